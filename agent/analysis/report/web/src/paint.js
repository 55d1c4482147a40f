// Draws the tree on a canvas: edges, then states, then words, and of all three only what is in sight.
import { drawEdges, drawReferences } from "./edges.js";
import { drawLabels } from "./labels.js";
import { drawMarks, drawStates } from "./states.js";

const BEYOND = 60;

// `scene`: places, nodes, count, references, scale, best, found, selected, hovered, current, theme, mode.
export function paint(canvas, camera, scene) {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  const { x, y, k } = camera.transform;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = scene.theme.bg;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
  const view = { k, ...inSight(canvas, camera) };
  drawEdges(context, scene, view);
  drawReferences(context, scene, view);
  const seen = idsInSight(scene, view);
  drawStates(context, scene, view, seen);
  drawMarks(context, scene, view);
  drawLabels(context, scene, view, seen);
  return seen.length;
}

function inSight(canvas, camera) {
  const first = camera.toWorld(-BEYOND, -BEYOND);
  const last = camera.toWorld(canvas.clientWidth + BEYOND, canvas.clientHeight + BEYOND);
  const edge = camera.toWorld(canvas.clientWidth, 0).x;
  return { left: first.x, top: first.y, right: last.x, bottom: last.y, edge };
}

function idsInSight({ places, count }, { left, right, top, bottom }) {
  const seen = [];
  for (let id = 0; id < count; id += 1) {
    const { x, y } = places[id];
    if (x >= left && x <= right && y >= top && y <= bottom) seen.push(id);
  }
  return seen;
}
