// The list of keys, and what shapes and colours mean.
import { h } from "./dom.js";
import { KEYS } from "./keys.js";

const SHAPES = [
  ["square", "the base state; any state when zoomed out"],
  ["ringed in the text colour", "solved"],
  ["hollow diamond", "its tests did not run"],
  [
    "ringed in orange",
    "merged: one state that several proposals led to, or two branches in one (fuse)",
  ],
  ["crossed out", "pruned by a person"],
  ["thick line", "the path to the best state"],
  ["dashed line", "to a merged state from its other parents"],
];

export function makeHelp() {
  const rows = (pairs) =>
    pairs.map(([key, said]) => h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, said)));
  const close = h(
    "button",
    { class: "close", "aria-label": "Close", onclick: () => element.close() },
    "×",
  );
  const element = h(
    "dialog",
    { class: "help", "aria-label": "Keys and signs" },
    close,
    h("h2", {}, "Keys"),
    h("table", {}, rows(KEYS)),
    h("h2", {}, "Signs"),
    h("table", {}, rows(SHAPES)),
  );
  return { element, open: () => element.showModal() };
}
