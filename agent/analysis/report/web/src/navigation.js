// Walking the tree without a pointer: to the parent, a child, a neighbour, the next state that was found.
import { h } from "./dom.js";
import { childrenOf } from "./layout.js";

export function makeNavigation({ facts, history, store, drawing }) {
  const children = childrenOf(facts.nodes);
  const places = () => drawing.scene.places;
  const shown = (id) => id < history.nodesAt(store.state.step);

  function select(id) {
    if (id === undefined || id === null || !facts.nodes[id]) return;
    if (!shown(id)) store.set({ step: history.stepOf(id) });
    store.set({ selected: id });
    drawing.show(id);
  }

  const parent = (id) => facts.nodes[id].parents[0];
  const middleChild = (id) => {
    const below = children[id].filter(shown);
    return below[Math.floor((below.length - 1) / 2)];
  };

  function neighbour(id, by) {
    const { depth } = places()[id];
    const level = facts.nodes
      .map((_, other) => other)
      .filter((o) => shown(o) && places()[o].depth === depth);
    const along = store.state.mode === "rings" ? (o) => places()[o].angle : (o) => places()[o].y;
    level.sort((a, b) => along(a) - along(b));
    return level[level.indexOf(id) + by];
  }

  const from = (go) => () => select(store.state.selected === null ? 0 : go(store.state.selected));

  function match(by) {
    const found = [...(store.state.found ?? facts.nodes.keys())];
    const at = found.indexOf(store.state.selected);
    if (found.length)
      select(found[at < 0 && by < 0 ? found.length - 1 : (at + by + found.length) % found.length]);
  }

  return {
    select,
    link: (id) => h("button", { class: "link", onclick: () => select(id) }, String(id)),
    up: from(parent),
    down: from(middleChild),
    before: from((id) => neighbour(id, -1)),
    after: from((id) => neighbour(id, 1)),
    match,
    base: () => select(0),
    best: () => select(facts.best.at(-1)),
  };
}
