// What the turns of a state cost, and what was asked for at it.
import { h, named, quiet } from "./dom.js";

const NAMES = {
  model_calls: "model calls",
  tokens_in: "tokens in",
  tokens_out: "tokens out",
  tokens_cached: "of those in, from a cache",
  cost_usd: "dollars",
  unpriced_calls: "calls of unknown price",
  measurements: "test runs",
};

export function showCost({ details }) {
  return [
    costTable("Turns that led to this state", details.usage),
    costTable("Requests made from this state", sum(details.asked.map(({ usage }) => usage))),
    h("p", {}, `Its tests ran for ${details.tests.seconds.toFixed(2)} s.`),
  ];
}

export function costTable(title, usage) {
  const rows = Object.entries(NAMES).filter(([key]) => usage[key]);
  if (!rows.length) return quiet(`${title}: no model was called.`);
  const amounts = rows.map(([key, name]) => [name, amount(key, usage[key])]);
  return h("table", { class: "worth" }, h("caption", {}, title), named(amounts));
}

const amount = (key, value) => (key === "cost_usd" ? value.toFixed(4) : value.toLocaleString("en"));

function sum(usages) {
  const total = {};
  for (const usage of usages)
    for (const [key, value] of Object.entries(usage)) total[key] = (total[key] ?? 0) + value;
  return total;
}
