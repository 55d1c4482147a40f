// A count with its noun, in the singular for one.

export const counted = (number, one, more = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : more}`;
