// The search field, and the states that it finds as a list.
import { h, replace } from "./dom.js";

const MOST = 40;

export function makeSearch({ facts, store, navigation }) {
  const field = h("input", {
    type: "search",
    id: "search",
    placeholder: "Search states  /",
    "aria-label": "Search states by number, words, file, action or policy",
    "aria-controls": "found",
    oninput: () => store.set({ query: field.value }),
    onkeydown: (event) => {
      if (event.key === "Enter") navigation.match(event.shiftKey ? -1 : 1);
    },
  });
  const count = h("span", { class: "count", id: "count", role: "status" });
  const list = h("ul", { id: "found", class: "found", hidden: true, "aria-label": "States found" });
  const item = (id) =>
    h(
      "li",
      {},
      h(
        "button",
        { onclick: () => navigation.select(id) },
        `${id} · ${facts.nodes[id].value.toFixed(2)} ${facts.nodes[id].label}`,
      ),
    );
  store.listen((state, changed) => {
    if (!changed.has("found")) return;
    const found = state.found;
    count.textContent = found === null ? "" : `${found.size} of ${facts.nodes.length}`;
    list.hidden = found === null || !state.query.trim();
    replace(list, list.hidden ? [] : [...found].slice(0, MOST).map(item));
  });
  return h("div", { class: "search", role: "search" }, field, count, list);
}
