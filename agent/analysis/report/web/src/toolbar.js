// The top of the page: what run it is, search, filters, and the buttons.
import { gradient, scale } from "./colours.js";
import { h } from "./dom.js";
import { makeFilterMenu } from "./filter-menu.js";
import { makeSearch } from "./search.js";

export function makeToolbar(page) {
  const { facts, store, drawing } = page;
  const button = (label, title, act, id) =>
    h("button", { id, title, "aria-label": title, onclick: act }, label);
  const theme = () => store.set({ theme: store.state.theme === "dark" ? "light" : "dark" });
  const mode = () => store.set({ mode: store.state.mode === "rings" ? "columns" : "rings" });
  return h(
    "header",
    { class: "toolbar" },
    h("h1", { title: facts.run }, facts.title),
    h("span", { class: `chip ${facts.status}`, title: facts.stop }, facts.status.replace("_", " ")),
    legend(facts),
    h("div", { class: "gap quiet", role: "status" }),
    makeSearch(page),
    makeFilterMenu(page),
    facts.tournaments.length
      ? button("Tournament", "The tournament (t)", page.tournament, "tournament")
      : null,
    button("◎", "Columns or rings (l)", mode, "mode"),
    button("⤢", "Fit all states (f)", () => drawing.fit(true), "fit"),
    button("◐", "Dark or light (d)", theme, "theme"),
    button("?", "Keys and signs (?)", page.help, "help"),
  );
}

function legend({ nodes }) {
  const { low, high } = scale(nodes);
  const bar = h("span", { class: "bar" });
  bar.style.background = gradient;
  return h(
    "span",
    { class: "legend", title: "Colour by value" },
    low.toFixed(2),
    bar,
    high.toFixed(2),
  );
}
