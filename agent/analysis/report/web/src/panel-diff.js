// What the state's own turns edited, and its whole patch where the run has kept one.
import { h } from "./dom.js";

const FUSED = "What its parents changed, merged by Ramify.";
const NO_EDIT = "No edit was recorded here; a shell command may have changed files: see Messages.";

export function showDiff({ id, node, details }) {
  if (id === 0) return h("p", { class: "quiet" }, "The repository as it is: nothing is changed.");
  const own = details.diff
    ? drawDiff(details.diff)
    : h("p", { class: "quiet" }, node.kind === "fuse" ? FUSED : NO_EDIT);
  if (!details.patch) return own;
  return [h("h3", {}, "This step"), own, h("h3", {}, "Whole patch"), drawDiff(details.patch)];
}

const CLASSES = [
  [/^(\+\+\+|---|diff |index )/, "file"],
  [/^@@/, "hunk"],
  [/^\+/, "added"],
  [/^-/, "removed"],
];

export function drawDiff(diff) {
  const line = (text) => {
    const kind = CLASSES.find(([pattern]) => pattern.test(text))?.[1] ?? "same";
    return h("span", { class: kind }, `${text}\n`);
  };
  return h("pre", { class: "diff" }, diff.replace(/\n$/, "").split("\n").map(line));
}
