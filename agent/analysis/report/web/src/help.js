// The list of keys, and what shapes and colours mean.
import { h, named, openDialog } from "./dom.js";
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

export const openHelp = () =>
  openDialog(
    "help",
    "Keys and signs",
    h("h2", {}, "Keys"),
    h("table", {}, named(KEYS)),
    h("h2", {}, "Signs"),
    h("table", {}, named(SHAPES)),
  );
