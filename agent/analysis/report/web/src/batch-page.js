// The page of a batch, or of a folder of runs: rates, curves, and a line for each instance.
import { drawCurves } from "./curves.js";
import { h, quiet, replace } from "./dom.js";
import { followTheme, keepTheme } from "./preferences.js";
import { keepFresh, passedOn, settle } from "./refresh.js";
import { makeTable } from "./table.js";
import { counted, percent } from "./words.js";

const UNITS = {
  measurements: "test runs",
  nodes: "states",
  seconds: "seconds",
  cost_usd: "dollars",
};

export function showBatch(facts) {
  let theme = followTheme();
  const turn = () => keepTheme((theme = theme === "dark" ? "light" : "dark"));
  const last = passedOn();
  const table = makeTable(facts.rows, last.table);
  const drawn = facts.batches.length ? makeCurves(facts, last.unit) : null;
  const dark = h("button", { id: "theme", "aria-label": "Dark or light", onclick: turn }, "◐");
  document.body.append(
    h(
      "header",
      { class: "toolbar" },
      h("h1", {}, facts.title),
      h("div", { class: "gap quiet", role: "status" }),
      dark,
    ),
    h(
      "main",
      { class: "report" },
      h("div", { class: "cards" }, facts.batches.map(card)),
      drawn?.element,
      table.element,
    ),
  );
  settle(last);
  keepFresh(facts, { view: () => ({ table: table.view, unit: drawn?.unit() }) });
  return { facts };
}

function card({ name, model, mode, total }) {
  const rate = total.resolved_rate;
  const states = Object.entries(total.states).map(([state, count]) => `${count} ${state}`);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, name),
    h("p", { class: "label" }, `${model} · ${mode} tests`),
    h("p", { class: "rate" }, rate === null ? "not graded" : percent(rate)),
    rate === null
      ? null
      : [
          interval(rate, total.resolved_rate_95),
          h(
            "p",
            {},
            `${total.resolved} of ${total.graded} resolved, 95 % interval ${percent(total.resolved_rate_95[0])} to ${percent(total.resolved_rate_95[1])}`,
          ),
        ],
    quiet([...states, counted(total.measurements, "test run"), cost(total)].join(" · ")),
  );
}

const cost = ({ cost_usd: usd }) => (usd === null ? "cost unknown" : `$${usd.toFixed(2)}`);

function interval(rate, [low, high]) {
  const element = h("div", { class: "interval", "aria-hidden": "true" }, h("span"), h("i"));
  const [bar, dot] = element.children;
  Object.assign(bar.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%` });
  dot.style.left = `${100 * rate}%`;
  return element;
}

function makeCurves({ charts }, unit = "measurements") {
  const figures = h("div");
  const show = (unit) => replace(figures, charts[unit].map(figure(UNITS[unit])));
  const options = Object.entries(UNITS).map(([unit, name]) => h("option", { value: unit }, name));
  const choice = h("select", { id: "unit", onchange: () => show(choice.value) }, options);
  choice.value = unit;
  show(unit);
  const element = h(
    "section",
    { class: "card wide" },
    h(
      "h2",
      {},
      "Resolved against budget, in ",
      h("label", {}, h("span", { class: "unseen" }, "unit"), choice),
      " per instance",
    ),
    figures,
  );
  return { element, unit: () => choice.value };
}

const figure =
  (unit) =>
  ({ mode, curves, problem }) =>
    h(
      "figure",
      {},
      h("h3", {}, `${mode} tests`),
      problem ? h("p", { class: "problem" }, problem) : drawCurves(curves, unit),
    );
