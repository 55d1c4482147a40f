// What the file holds: facts at once, and the details of a state when somebody looks at it.

export function readFacts() {
  return JSON.parse(document.getElementById("facts").textContent);
}

const CHUNK = 64;
const unpacked = new Map();

export async function detailsOf(id) {
  const number = Math.floor(id / CHUNK);
  if (!unpacked.has(number)) unpacked.set(number, unpack(number));
  return (await unpacked.get(number))[id % CHUNK];
}

async function unpack(number) {
  const packed = document.querySelectorAll("script.chunk")[number].textContent;
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
