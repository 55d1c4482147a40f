// States: the colour is the value, the shape says what colour alone must not.

const RADIUS = { base: 8, solved: 8, invalid: 5.5 };
const FULL_CIRCLE = 2 * Math.PI;
const EQUAL = Math.sqrt(Math.PI) / 2;

const SMALL = 0.3;
const DIM = 0.18;

// A state never becomes smaller than a dot.
const grown = ({ k }) => Math.max(1, 0.34 / k);

export const radius = (node) => RADIUS[node.state] ?? 6;

export function drawStates(context, scene, view, seen) {
  if (view.k < SMALL) return drawDots(context, scene, view, seen);
  for (const id of seen) {
    const node = scene.nodes[id];
    context.globalAlpha = scene.found && !scene.found.has(id) ? DIM : 1;
    drawState(context, scene, node, scene.places[id], radius(node) * grown(view));
  }
  context.globalAlpha = 1;
}

// From afar there are thousands: all of one colour are one path, and dots of four pixels are squares as large as the
// circles would be, which cost a third less of a frame.
function drawDots(context, scene, view, seen) {
  const groups = new Map();
  for (const id of seen) {
    const node = scene.nodes[id];
    const dim = scene.found !== null && !scene.found.has(id);
    const key = `${dim ? DIM : 1} ${scene.scale.of(node.value)}`;
    if (!groups.has(key)) groups.set(key, new Path2D());
    const { x, y } = scene.places[id];
    const size = radius(node) * grown(view);
    const half = size * EQUAL;
    groups.get(key).rect(x - half, y - half, 2 * half, 2 * half);
  }
  for (const [key, path] of groups) {
    const [alpha, colour] = key.split(" ");
    context.globalAlpha = Number(alpha);
    context.fillStyle = colour;
    context.fill(path);
  }
  context.globalAlpha = 1;
  for (const id of seen) {
    if (scene.nodes[id].state !== "solved") continue;
    const size = radius(scene.nodes[id]) * grown(view);
    ring(context, scene.places[id].x, scene.places[id].y, size * 1.55, scene.theme.ink, size / 3);
  }
}

function drawState(context, scene, node, { x, y }, size) {
  context.beginPath();
  if (node.state === "base") context.rect(x - size, y - size, 2 * size, 2 * size);
  else if (node.state === "invalid") diamond(context, x, y, size);
  else context.arc(x, y, size, 0, FULL_CIRCLE);
  context.fillStyle = node.state === "invalid" ? scene.theme.bg : scene.scale.of(node.value);
  context.fill();
  context.lineWidth = size / 6;
  context.strokeStyle = node.state === "invalid" ? scene.theme.muted : scene.theme.outline;
  context.stroke();
  if (node.state === "solved") ring(context, x, y, size * 1.55, scene.theme.ink, size / 4.5);
  if (node.marks.includes("merged"))
    ring(context, x, y, size * 1.45, scene.theme.reference, size / 5);
  if (node.marks.includes("pruned")) cross(context, x, y, size, scene.theme.ink);
}

export function drawMarks(
  context,
  { places, nodes, count, selected, hovered, current, theme },
  view,
) {
  const grow = grown(view);
  const around = (id, colour, factor, width) => {
    if (id == null || id >= count) return;
    ring(
      context,
      places[id].x,
      places[id].y,
      radius(nodes[id]) * grow * factor,
      colour,
      width * grow,
    );
  };
  around(current, theme.halo, 2.6, 5);
  around(hovered, theme.muted, 1.9, 2);
  around(selected, theme.accent, 2.1, 3);
}

function ring(context, x, y, size, colour, width) {
  context.beginPath();
  context.arc(x, y, size, 0, FULL_CIRCLE);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

function diamond(context, x, y, size) {
  context.moveTo(x, y - size);
  context.lineTo(x + size, y);
  context.lineTo(x, y + size);
  context.lineTo(x - size, y);
  context.closePath();
}

function cross(context, x, y, size, colour) {
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x + size, y - size);
  context.lineTo(x - size, y + size);
  context.strokeStyle = colour;
  context.lineWidth = size / 4;
  context.stroke();
}
