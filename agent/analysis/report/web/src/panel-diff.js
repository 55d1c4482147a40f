// What the state's own turns edited, and its whole patch where the run has kept one.
import { h, quiet } from "./dom.js";

const BY_SHELL = "No edit was recorded, but a shell command may have changed files: see Messages.";

export function showDiff({ id, node, details }) {
  if (id === 0) return quiet("The repository as it is: nothing is changed.");
  const title = node.kind === "fuse" ? `Merged into state ${node.parents[0]}` : "This step";
  const nothing = node.actions.includes("shell") ? BY_SHELL : "This step edited nothing.";
  const own = details.diff ? drawDiff(details.diff) : quiet(nothing);
  const whole = details.patch && [h("h3", {}, "Whole patch"), drawDiff(details.patch)];
  return [h("h3", {}, title), own, whole || null];
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
