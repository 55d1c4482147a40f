// The run as a whole: what the side of the page shows while no state is selected.
import { h } from "./dom.js";
import { costTable } from "./panel-cost.js";

export function showRun({ facts, navigation }) {
  const best = facts.best.at(-1);
  const chosen = Object.entries(facts.settings).map(([name, value]) =>
    h("span", { class: "chip" }, `${name} ${value}`),
  );
  return [
    h(
      "div",
      { class: "heading" },
      h("h2", {}, "The run"),
      h("p", { class: "label" }, facts.run),
      h("p", { class: "chips" }, chosen),
    ),
    h(
      "div",
      { class: "body" },
      h(
        "p",
        {},
        facts.stop,
        facts.status === "running"
          ? ""
          : facts.verified
            ? "; the patch was verified"
            : "; not verified",
        facts.refresh_s
          ? `. While nothing is open, this page follows it every ${facts.refresh_s} s.`
          : "",
      ),
      facts.answer.length > 0 &&
        h(
          "ul",
          { class: "answer" },
          facts.answer.map((line) => h("li", {}, line)),
        ),
      best !== undefined &&
        h(
          "p",
          {},
          h("button", { onclick: () => navigation.select(best) }, `Go to the best state, ${best}`),
        ),
      facts.waves.length > 0 &&
        h(
          "ul",
          { class: "waves" },
          facts.waves.map((line) => h("li", {}, line)),
        ),
      costTable("What it cost", facts.usage),
      h("h3", {}, "The issue"),
      h("pre", { class: "issue" }, facts.statement || "none recorded"),
    ),
  ];
}
