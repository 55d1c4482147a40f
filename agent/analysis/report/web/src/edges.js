// Lines between states: an edit's, and those of references and merges, which are dashed.

const AFAR = 0.15;

export function drawEdges(context, scene, view) {
  const { nodes, count, best, found, theme } = scene;
  const join = view.k < AFAR ? line : curve;
  const groups = { plain: new Path2D(), dim: new Path2D(), best: new Path2D() };
  for (let id = 1; id < count; id += 1) {
    const parent = nodes[id].parents[0];
    if (out(scene.places[parent], scene.places[id], view)) continue;
    const group = best.has(id) ? "best" : found && !found.has(id) ? "dim" : "plain";
    join(groups[group], scene, parent, id);
  }
  stroke(context, groups.dim, theme.edge, 1, 0.25, view);
  stroke(context, groups.plain, theme.edge, 1.3, 1, view);
  stroke(context, groups.best, theme.accent, 3, 1, view);
}

export function drawReferences(context, scene, view) {
  const path = new Path2D();
  for (const { from, to } of scene.references) {
    if (out(scene.places[from], scene.places[to], view)) continue;
    bow(path, scene.places[from], scene.places[to]);
  }
  if (view.k >= AFAR) context.setLineDash([5, 4]);
  stroke(context, path, scene.theme.reference, 1.2, 0.75, view);
  context.setLineDash([]);
}

function stroke(context, path, colour, width, alpha, view) {
  context.strokeStyle = colour;
  context.globalAlpha = alpha;
  context.lineWidth = Math.max(width, (width * 0.55) / view.k);
  context.stroke(path);
  context.globalAlpha = 1;
}

function line(path, { places }, parent, id) {
  path.moveTo(places[parent].x, places[parent].y);
  path.lineTo(places[id].x, places[id].y);
}

function curve(path, { places, mode }, parent, id) {
  const [a, b] = [places[parent], places[id]];
  path.moveTo(a.x, a.y);
  if (mode === "rings") {
    const [near, far] = [Math.hypot(a.x, a.y), Math.hypot(b.x, b.y)];
    const middle = (near + far) / 2;
    const from = near ? [(a.x / near) * middle, (a.y / near) * middle] : [b.x / 2, b.y / 2];
    path.bezierCurveTo(...from, (b.x / far) * middle, (b.y / far) * middle, b.x, b.y);
  } else {
    const middle = (a.x + b.x) / 2;
    path.bezierCurveTo(middle, a.y, middle, b.y, b.x, b.y);
  }
}

function bow(path, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  path.moveTo(a.x, a.y);
  path.quadraticCurveTo((a.x + b.x) / 2 - dy * 0.2, (a.y + b.y) / 2 + dx * 0.2, b.x, b.y);
}

function out(a, b, { left, right, top, bottom }) {
  const [width, height] = [Math.abs(a.x - b.x) * 0.2, Math.abs(a.y - b.y) * 0.2];
  return (
    Math.max(a.x, b.x) + height < left ||
    Math.min(a.x, b.x) - height > right ||
    Math.max(a.y, b.y) + width < top ||
    Math.min(a.y, b.y) - width > bottom
  );
}
