// Where states are drawn: depth from left to right, or rings around the base state. Positions never change while a
// search is replayed.
import { hierarchy, tree } from "d3-hierarchy";

const COLUMN = 190;
const ROW = 24;
const RING = 120;
const ARC = 15;
const WORDS = 260;
const FEW = 40;

export function layOut(nodes, mode) {
  if (!nodes.length) return [];
  const children = childrenOf(nodes);
  const root = hierarchy(0, (id) => children[id]);
  return mode === "rings" ? rings(root) : columns(root);
}

export function childrenOf(nodes) {
  const children = nodes.map(() => []);
  nodes.forEach((node, id) => node.parents.length && children[node.parents[0]].push(id));
  return children;
}

function columns(root) {
  tree().nodeSize([ROW, COLUMN])(root);
  return placed(root, (at) => ({ x: at.y, y: at.x, angle: 0 }));
}

function rings(root) {
  const crowd = Math.max(root.leaves().length, 6);
  const ring = Math.max(RING, (crowd * ARC) / (2 * Math.PI) / Math.max(root.height, 1));
  const apart = (a, b) => (a.parent === b.parent ? 1 : 2) / Math.max(a.depth, 1);
  tree()
    .size([2 * Math.PI, ring * Math.max(root.height, 1)])
    .separation(apart)(root);
  return placed(root, (at) => {
    const angle = at.x - Math.PI / 2;
    return { x: at.y * Math.cos(angle), y: at.y * Math.sin(angle), angle };
  });
}

function placed(root, place) {
  const places = [];
  root.each((at) => (places[at.data] = { ...place(at), depth: at.depth, leaf: !at.children }));
  return places;
}

// What everything takes, with room for the words beside the leaves where they can be read.
export function bounds(places, mode) {
  const [before, beside] =
    mode === "columns" ? [WORDS / 4, WORDS] : places.length < FEW ? [WORDS, WORDS] : [0, 0];
  const above = mode === "columns" ? 0 : before;
  const box = { left: 0, right: 0, top: 0, bottom: 0 };
  for (const { x, y } of places) {
    box.left = Math.min(box.left, x - before);
    box.right = Math.max(box.right, x + beside);
    box.top = Math.min(box.top, y - above);
    box.bottom = Math.max(box.bottom, y + above);
  }
  return box;
}
