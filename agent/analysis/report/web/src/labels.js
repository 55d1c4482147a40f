// Words beside states, once there is room to read them: long ones where they fit, short ones or none where they do not.
import { makeBoxes } from "./boxes.js";
import { radius } from "./states.js";

const READABLE = { columns: 0.62, rings: 0.95 };
const LONGEST = { leaf: 64, inner: 24 };
const HEIGHT = 13;
const END = 8;
const LITTLE = 0.3;

export function drawLabels(context, scene, view, seen) {
  if (view.k < READABLE[scene.mode]) return;
  Object.assign(context, {
    font: "12px system-ui, sans-serif",
    textBaseline: "middle",
    lineJoin: "round",
    strokeStyle: scene.theme.bg,
    fillStyle: scene.theme.ink,
    lineWidth: 4,
  });
  const wanted = seen.filter((id) => !scene.found || scene.found.has(id));
  if (scene.mode === "rings") for (const id of wanted) drawTurned(context, scene, id);
  else drawBeside(context, scene, seen, wanted, view.edge);
}

// What matters most is written first. `edge`: where the drawing ends on the right.
function drawBeside(context, scene, seen, wanted, edge) {
  const boxes = makeBoxes(HEIGHT);
  for (const id of seen) boxes.take(around(scene, id));
  const rank = (id) => (id === scene.selected ? 0 : scene.best.has(id) ? 1 : 2);
  for (const id of [...wanted].sort((a, b) => rank(a) - rank(b) || a - b)) {
    context.textAlign = scene.places[id].leaf ? "left" : "center";
    const place = placesFor(context, scene, id, edge).find(({ box }) => boxes.free(box));
    if (!place) continue;
    boxes.take(place.box);
    write(context, place.words, place.x, place.y);
  }
}

// Where its words may stand, the best place first: beside a leaf, above or below any other state.
function placesFor(context, scene, id, edge) {
  const { leaf, x } = scene.places[id];
  const sides = leaf ? [0] : [-1, 1];
  const room = leaf ? edge - x - reach(scene.nodes[id]) - END : Infinity;
  const texts = [fitted(context, long(scene, id), room), short(scene, id)].filter(Boolean);
  return texts.flatMap((words) => sides.map((side) => placed(context, scene, id, words, side)));
}

// As much of the words as there is room for; nothing where that would be too little.
function fitted(context, words, room) {
  const share = room / context.measureText(words).width;
  return share < LITTLE ? "" : shortened(words, Math.floor(words.length * share));
}

function around({ nodes, places }, id) {
  const size = reach(nodes[id]) - 2;
  const { x, y } = places[id];
  return { left: x - size, right: x + size, top: y - size, bottom: y + size };
}

function placed(context, { nodes, places }, id, words, side) {
  const gap = reach(nodes[id]);
  const width = context.measureText(words).width;
  const x = side === 0 ? places[id].x + gap : places[id].x;
  const y = places[id].y + side * (gap + 7);
  const left = side === 0 ? x : x - width / 2;
  const box = { left, right: left + width, top: y - HEIGHT / 2, bottom: y + HEIGHT / 2 };
  return { words, x, y, box };
}

function drawTurned(context, scene, id) {
  const { x, y, angle, leaf } = scene.places[id];
  const gap = reach(scene.nodes[id]);
  const flipped = Math.cos(angle) < 0;
  context.save();
  context.translate(x, y);
  if (leaf) context.rotate(flipped ? angle + Math.PI : angle);
  context.textAlign = leaf ? (flipped ? "right" : "left") : "center";
  write(context, long(scene, id), leaf ? (flipped ? -gap : gap) : 0, leaf ? 0 : -gap - 6);
  context.restore();
}

const reach = (node) =>
  radius(node) + (node.state === "solved" || node.marks.includes("merged") ? 8 : 5);

const short = ({ nodes }, id) => `${id}  ${nodes[id].value.toFixed(2)}`;

function long(scene, id) {
  const { label, policy } = scene.nodes[id];
  const told = label.replace(`${policy.split("/")[0]}: `, "");
  const most = scene.places[id].leaf ? LONGEST.leaf : LONGEST.inner;
  return [short(scene, id), shortened(told, most)].filter(Boolean).join("  ");
}

function write(context, words, x, y) {
  context.strokeText(words, x, y);
  context.fillText(words, x, y);
}

function shortened(label, longest) {
  const characters = [...label];
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : label;
}
