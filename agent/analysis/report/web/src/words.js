// Numbers in words: a count with its noun, in the singular for one, and a share.

export const counted = (number, one, more = `${one}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? one : more}`;

export const percent = (share) => `${(100 * share).toFixed(1)} %`;
