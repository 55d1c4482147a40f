// What was said and done on the way from the parent to this state, and what models answered on its behalf.
import { chip, h, quiet } from "./dom.js";
import { drawDiff } from "./panel-diff.js";

export function showTurns({ id, details }) {
  const nothing = id === 0 ? "No turn led to the base state." : "No turn was recorded.";
  return [
    details.turns.length ? details.turns.map(turn) : quiet(nothing),
    details.asked.length > 0 && h("h3", {}, "What models answered for this state"),
    details.asked.map(answer),
  ];
}

function turn({ said, acts }, number) {
  return h(
    "section",
    { class: "turn" },
    h("h3", {}, `Turn ${number + 1}`),
    said && h("p", { class: "said" }, said),
    acts.map(act),
  );
}

function act({ action, text, ok, elided, refused }) {
  const state = refused ? "refused" : ok ? "" : "failed";
  return h(
    "div",
    { class: `act ${state}` },
    h(
      "p",
      { class: "chips" },
      chip(action.kind.replace("_", " ")),
      state && chip(state, "invalid"),
    ),
    body(action),
    text &&
      h(
        "details",
        {},
        h("summary", {}, `Result${elided ? ` (${elided} bytes left out)` : ""}`),
        h("pre", {}, text),
      ),
  );
}

function body(action) {
  const file = h("code", {}, `${action.path ?? ""}${action.line ? `:${action.line}` : ""}`);
  switch (action.kind) {
    case "edit":
      return [file, drawDiff([...marked("-", action.old), ...marked("+", action.new)].join("\n"))];
    case "write":
      return [file, drawDiff(marked("+", action.content).join("\n"))];
    case "shell":
      return h("pre", { class: "command" }, action.command);
    default:
      return h(
        "code",
        {},
        Object.entries(action)
          .filter(([key]) => key !== "kind")
          .map(([key, value]) => `${key}=${value} `),
      );
  }
}

const marked = (mark, text) =>
  text
    ? text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => mark + line)
    : [];

function answer({ model, purpose, text, usage }) {
  const price = usage.unpriced_calls ? "price unknown" : `$${usage.cost_usd.toFixed(4)}`;
  const head = `${purpose || "policy"} · ${model} · ${usage.tokens_in} tokens in, ${usage.tokens_out} out · ${price}`;
  return h("details", {}, h("summary", {}, head), h("pre", {}, text || "(calls of tools only)"));
}
