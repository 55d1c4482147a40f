// Which places are taken: rectangles, kept by the rows that they touch.

export function makeBoxes(height) {
  const rows = new Map();

  function touched({ top, bottom }) {
    const found = [];
    for (let row = Math.floor(top / height); row <= Math.floor(bottom / height); row += 1) {
      if (!rows.has(row)) rows.set(row, []);
      found.push(rows.get(row));
    }
    return found;
  }

  const apart = (a, b) =>
    a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;

  return {
    take(box) {
      for (const row of touched(box)) row.push(box);
    },
    free: (box) => touched(box).every((row) => row.every((other) => apart(box, other))),
  };
}
