// The side of the page: the run as a whole, or one state with a tab for each thing to know of it.
import { chip, h, replace } from "./dom.js";
import { detailsOf } from "./facts.js";
import { showCost } from "./panel-cost.js";
import { showDiff } from "./panel-diff.js";
import { showRun } from "./panel-run.js";
import { showTests } from "./panel-tests.js";
import { showTurns } from "./panel-turns.js";
import { showWays } from "./panel-ways.js";
import { showWhy } from "./panel-why.js";

const TABS = { diff: showDiff, tests: showTests, why: showWhy, turns: showTurns, cost: showCost };
const NAMES = { diff: "Diff", tests: "Tests", why: "Why", turns: "Messages", cost: "Cost" };

export function makePanel(page) {
  const { store } = page;
  const element = h("aside", { class: "panel", "aria-label": "Details" });
  const show = () =>
    store.state.selected === null ? replace(element, showRun(page)) : showState(page, element);
  store.listen((_, changed) => {
    if (changed.has("selected") || changed.has("tab")) show();
  });
  show();
  return element;
}

async function showState(page, element) {
  const { facts, store } = page;
  const { selected: id, tab } = store.state;
  const focused =
    element.contains(document.activeElement) && document.activeElement.matches("[role=tab]");
  const body = h(
    "div",
    { role: "tabpanel", id: "tabpanel", tabindex: "0", "aria-labelledby": `tab-${tab}` },
    "…",
  );
  replace(element, heading(page, id), tabs(store), body);
  if (focused) document.getElementById(`tab-${tab}`).focus();
  const details = await detailsOf(id);
  if (store.state.selected !== id || store.state.tab !== tab) return;
  replace(body, await TABS[tab]({ page, facts, id, node: facts.nodes[id], details }));
  body.dataset.state = id;
}

function heading(page, id) {
  const { facts, navigation, drawing } = page;
  const node = facts.nodes[id];
  const swatch = h("span", { class: "swatch" });
  swatch.style.background = drawing.scene.scale.of(node.value);
  return h(
    "div",
    { class: "heading" },
    h("h2", {}, swatch, `State ${id}`, h("span", { class: "value" }, node.value.toFixed(3))),
    h("p", { class: "label" }, node.label),
    h(
      "p",
      { class: "chips" },
      chip(node.state, node.state),
      node.marks.map((mark) => chip(mark)),
      chip(node.tests),
      node.kind && chip(node.kind),
      node.policy && chip(node.policy),
      facts.starts.length > 1 && chip(`round ${node.round}`),
    ),
    h(
      "nav",
      { class: "path", "aria-label": "Path from the base state" },
      path(facts, id).map(step(navigation, id)),
    ),
    showWays(page, id),
  );
}

export function path(facts, id) {
  const ids = [id];
  while (facts.nodes[ids[0]].parents.length) ids.unshift(facts.nodes[ids[0]].parents[0]);
  return ids;
}

const step = (navigation, selected) => (id) =>
  h(
    "button",
    {
      "aria-label": `state ${id}`,
      "aria-current": id === selected ? "step" : null,
      onclick: () => navigation.select(id),
    },
    String(id),
  );

function tabs(store) {
  const names = Object.keys(TABS);
  const go = (by) =>
    store.set({ tab: names[(names.indexOf(store.state.tab) + by + names.length) % names.length] });
  const onkeydown = (event) => {
    if (event.key === "ArrowRight") go(1);
    if (event.key === "ArrowLeft") go(-1);
    if (event.key === "Home") store.set({ tab: names[0] });
    if (event.key === "End") store.set({ tab: names.at(-1) });
  };
  const tab = (name) => {
    const chosen = store.state.tab === name;
    const attributes = {
      role: "tab",
      id: `tab-${name}`,
      "aria-selected": String(chosen),
      "aria-controls": "tabpanel",
    };
    return h(
      "button",
      { ...attributes, tabindex: chosen ? "0" : "-1", onclick: () => store.set({ tab: name }) },
      NAMES[name],
    );
  };
  return h(
    "div",
    { role: "tablist", "aria-label": "Details of the state", onkeydown },
    names.map(tab),
  );
}
