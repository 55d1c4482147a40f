// A line for each instance: sorted by any column, narrowed by words and by how it ended.
import { h, replace } from "./dom.js";

const yes = (value) => (value === null ? "?" : value ? "yes" : "no");
const fixed = (digits) => (value) => (value === null ? "?" : value.toFixed(digits));

const COLUMNS = [
  ["instance_id", "instance", String],
  ["batch", "batch", String],
  ["mode", "tests", String],
  ["state", "state", String],
  ["solved", "solved", yes],
  ["resolved", "resolved", yes],
  ["nodes", "states", String],
  ["measurements", "test runs", String],
  ["seconds", "seconds", fixed(0)],
  ["tokens", "tokens", String],
  ["cost_usd", "dollars", fixed(4)],
  ["flagged", "flagged", String],
  ["stop", "stop", String],
  ["why", "why", String],
];
const FITS = {
  all: () => true,
  resolved: (row) => row.resolved === true,
  "not resolved": (row) => row.resolved === false,
  "not graded": (row) => row.resolved === null,
  solved: (row) => row.solved,
  "failed for outside reasons": (row) => ["infra", "broken", "config"].includes(row.state),
};

export function makeTable(rows, last = {}) {
  const columns = COLUMNS.filter(([key]) =>
    rows.some((row) => row[key] !== "" && row[key] !== null),
  );
  const view = { key: "instance_id", down: false, words: "", fit: "all", ...last };
  const body = h("tbody");
  const count = h("span", { class: "quiet", role: "status", id: "rows" });
  const heads = columns.map(([key, name]) => head(key, name));

  function head(key, name) {
    return h(
      "th",
      { scope: "col", "data-key": key },
      h("button", { class: "sort", id: `sort-${key}`, onclick: () => sort(key) }, name),
    );
  }

  function sort(key) {
    show({ key, down: view.key === key ? !view.down : false });
  }

  function show(change) {
    Object.assign(view, change);
    const found = rows.filter((row) => FITS[view.fit](row) && holds(row, view.words));
    found.sort((a, b) => compare(a[view.key], b[view.key], view.down ? -1 : 1));
    replace(
      body,
      found.map((row) => line(row, columns)),
    );
    count.textContent = `${found.length} of ${rows.length}`;
    for (const each of heads)
      each.setAttribute("aria-sort", each.dataset.key === view.key ? order(view) : "none");
  }

  const words = h("input", {
    type: "search",
    id: "words",
    placeholder: "Filter instances",
    value: view.words,
    "aria-label": "Filter instances by words",
    oninput: () => show({ words: words.value }),
  });
  const options = Object.keys(FITS).map((name) => h("option", {}, name));
  const fit = h(
    "select",
    { id: "fit", "aria-label": "Show instances", onchange: () => show({ fit: fit.value }) },
    options,
  );
  fit.value = view.fit;
  show({});
  const element = h(
    "section",
    { class: "card wide" },
    h("div", { class: "narrow search" }, words, fit, count),
    h(
      "div",
      { class: "wide" },
      h("table", { class: "lines" }, h("thead", {}, h("tr", {}, heads)), body),
    ),
  );
  return { element, view };
}

const order = ({ down }) => (down ? "descending" : "ascending");

function holds(row, words) {
  const text = COLUMNS.map(([key]) => row[key])
    .join(" ")
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

// What is unknown comes last, whichever way the rest is sorted.
function compare(a, b, way) {
  if (a === null || b === null) return (a === null) - (b === null);
  return way * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
}

function line(row, columns) {
  const cell = ([key, , shown]) => {
    const text = shown(row[key]);
    if (key === "instance_id")
      return h("th", { scope: "row" }, row.link ? h("a", { href: row.link }, text) : text);
    const mark =
      key === "resolved" || key === "solved"
        ? { class: `is-${text === "?" ? "unknown" : text}` }
        : {};
    return h("td", { ...mark, ...(typeof row[key] === "number" ? { class: "number" } : {}) }, text);
  };
  return h("tr", {}, columns.map(cell));
}
