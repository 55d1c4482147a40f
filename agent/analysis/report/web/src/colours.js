// Value to colour: viridis, which people with any common colour blindness can order, and its way to dark and light.

const STOPS = [
  [68, 1, 84],
  [70, 50, 126],
  [54, 92, 141],
  [39, 127, 142],
  [31, 161, 135],
  [74, 193, 109],
  [160, 218, 57],
  [253, 231, 37],
];
const STEPS = 64;
const palette = Array.from({ length: STEPS + 1 }, (_, step) => mixed(step / STEPS));

function mixed(share) {
  const place = share * (STOPS.length - 1);
  const before = Math.min(Math.floor(place), STOPS.length - 2);
  const part = place - before;
  const [r, g, b] = STOPS[before].map((from, i) =>
    Math.round(from + (STOPS[before + 1][i] - from) * part),
  );
  return `rgb(${r},${g},${b})`;
}

export function scale(nodes) {
  const values = nodes.map((node) => node.value);
  const low = Math.min(...values, 1);
  const high = Math.max(...values, low + 1e-9);
  return { low, high, of: (value) => palette[Math.round(((value - low) / (high - low)) * STEPS)] };
}

export const gradient = `linear-gradient(90deg, ${palette.filter((_, i) => i % 8 === 0).join(",")})`;

const NAMES = ["bg", "edge", "reference", "accent", "ink", "muted", "outline", "halo"];

// The colours of the style sheet that the canvas needs, for the theme that is shown.
export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}
