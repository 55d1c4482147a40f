// The menu of filters.
import { h } from "./dom.js";
import { MARKS, STATES, noFilters, values } from "./filters.js";

export function makeFilterMenu({ facts, store }) {
  const menu = h("details", { class: "menu", id: "filters" }, h("summary", {}, "Filter"));
  const form = h("form", { onsubmit: (event) => event.preventDefault() });
  const groups = [
    ["states", "Status", STATES.filter((s) => facts.nodes.some((n) => n.state === s))],
    ["marks", "Marks", MARKS.filter((m) => facts.nodes.some((n) => n.marks.includes(m)))],
    ["actions", "Actions", values(facts.nodes, (n) => n.actions)],
    ["kinds", "Kind of child", values(facts.nodes, (n) => [n.kind])],
    ["policies", "Policy", values(facts.nodes, (n) => [n.policy])],
    ["rounds", "Round", facts.starts.length > 1 ? facts.starts.map((_, i) => String(i + 1)) : []],
  ];
  form.append(
    ...groups.filter(([, , names]) => names.length).map((group) => boxes(...group)),
    range(),
  );
  form.append(h("button", { type: "reset" }, "Show all"));
  form.addEventListener("input", () => store.set({ filters: read(form) }));
  form.addEventListener("reset", () => store.set({ filters: noFilters }));
  menu.append(form);
  return menu;
}

function boxes(name, title, choices) {
  const box = (value) => h("label", {}, h("input", { type: "checkbox", name, value }), value);
  return h("fieldset", {}, h("legend", {}, title), choices.map(box));
}

function range() {
  const field = (name, said) =>
    h("label", {}, said, h("input", { type: "number", name, min: "0", max: "1", step: "0.05" }));
  return h("fieldset", {}, h("legend", {}, "Value"), field("low", "from "), field("high", "to "));
}

function read(form) {
  const data = new FormData(form);
  const number = (name) => (data.get(name) ? Number(data.get(name)) : null);
  const lists = ["states", "marks", "actions", "kinds", "policies", "rounds"];
  const filters = Object.fromEntries(lists.map((name) => [name, data.getAll(name)]));
  const low = number("low");
  const high = number("high");
  const none = low === null && high === null && lists.every((name) => !filters[name].length);
  return none ? noFilters : { ...filters, low, high };
}
