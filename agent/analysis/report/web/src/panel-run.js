// The run as a whole: what the side of the page shows while no state is selected.
import { chip, h, list } from "./dom.js";
import { costTable } from "./panel-cost.js";

export function showRun({ facts, navigation }) {
  const best = facts.best.at(-1);
  const chosen = Object.entries(facts.settings).map(([name, value]) => chip(`${name} ${value}`));
  const answer = facts.answer.slice(facts.status === "solved" ? 1 : 0); // the first line says so again
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
      h("p", {}, ended(facts)),
      answer.length > 0 && list("answer", answer),
      best > 0 &&
        h("p", {}, h("button", { onclick: () => navigation.select(best) }, goTo(facts, best))),
      facts.rounds.length > 0 && list("rounds", facts.rounds),
      costTable("Cost", facts.usage),
      facts.statement && [h("h3", {}, "Issue"), h("pre", { class: "issue" }, facts.statement)],
      facts.goals.length > 0 && [
        h("h3", {}, "Goal tests"),
        list(
          "answer",
          facts.goals.map((test) => h("code", {}, test)),
        ),
      ],
    ),
  ];
}

function ended({ status, stop, verified, refresh_s: seconds }) {
  const follows = seconds
    ? ` This page is updated every ${seconds} s while no state is selected.`
    : "";
  if (status === "running") return `${stop}.${follows}`;
  const patch =
    status === "no_patch" ? "" : verified ? " The patch is verified." : " Not verified.";
  return `Search finished: ${stop}.${patch}`;
}

const goTo = ({ status }, best) =>
  status === "no_patch"
    ? `Go to the state of highest value, ${best}`
    : `Go to the best state, ${best}`;
