// Says to a screen reader what a canvas cannot: which state is selected, and what just happened.
import { h } from "./dom.js";

export function announcer({ facts, history, store }) {
  const element = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
  store.listen((state, changed) => {
    if (changed.has("selected")) element.textContent = ofState(facts, state.selected);
    else if (changed.has("step") && !state.playing)
      element.textContent = ofMoment(history, state.step);
  });
  return element;
}

function ofState(facts, id) {
  if (id === null) return "no state selected";
  const { value, state, tests, label } = facts.nodes[id];
  return `state ${id}, value ${value.toFixed(3)}, ${state}, ${tests}${label ? `, ${label}` : ""}`;
}

function ofMoment(history, step) {
  const moment = history.momentAt(step);
  return moment
    ? `event ${step} of ${history.length}: ${moment.kind} ${moment.text}`
    : "before the search";
}
