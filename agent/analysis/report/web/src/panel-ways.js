// In words, how a state was reached that the drawing rings: from several states, or by a merge of two branches.
import { h } from "./dom.js";

export function showWays({ facts, navigation }, id) {
  const node = facts.nodes[id];
  if (!node.marks.includes("merged")) return null;
  const named = (ids) =>
    ids.flatMap((each, at) => [between(at, ids.length), navigation.link(each)]);
  const others = facts.references
    .filter(([from, to]) => to === id && !node.parents.includes(from))
    .map(([from]) => from);
  const fused = node.parents.length > 1;
  return h(
    "p",
    { class: "quiet ways" },
    fused && ["Two branches in one: git merged ", named(node.parents), ". "],
    others.length > 0 && ["One state with several parents: ", named(others), " led here, too."],
    !fused &&
      !others.length &&
      "Proposed more than once here: it was carried out and measured once.",
  );
}

const between = (at, count) => (at === 0 ? "" : at === count - 1 ? " and " : ", ");
