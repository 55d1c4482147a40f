// The keyboard. `KEYS` is also what the help shows.

export const KEYS = [
  ["← →", "to the parent, to a child"],
  ["↑ ↓", "to the neighbours of the same depth"],
  ["Enter", "read the details of the state; Tab goes into them, and arrows scroll them there"],
  ["/", "search states"],
  ["n N", "the next and the previous state found"],
  [", .", "one event back, one forward"],
  ["Space", "play or pause the search"],
  ["Home b", "the base state, the best state"],
  ["+ − f", "zoom in, zoom out, fit all states"],
  ["l", "columns or rings"],
  ["t", "the tournament"],
  ["d", "dark or light"],
  ["Esc", "deselect the state; leave a field or a menu"],
  ["?", "these keys"],
];

// What a person who reads the details scrolls them with; elsewhere it walks the tree.
const SCROLLS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", " "]);

// What moves between tabs.
const MOVES = new Set(["ArrowLeft", "ArrowRight", "Home", "End"]);

export function listenToKeys(page) {
  const { navigation, drawing, store } = page;
  const step = (by) => () =>
    store.set({ playing: false, step: bounded(store.state.step + by, page.history.length) });
  const deeds = {
    ArrowLeft: navigation.up,
    ArrowRight: navigation.down,
    ArrowUp: navigation.before,
    ArrowDown: navigation.after,
    Home: navigation.base,
    Enter: () => document.querySelector(".panel [role=tab][aria-selected=true]")?.focus(),
    n: () => navigation.match(1),
    N: () => navigation.match(-1),
    b: navigation.best,
    ",": step(-1),
    ".": step(1),
    " ": () => store.set({ playing: !store.state.playing }),
    "+": () => drawing.camera.by(1.4),
    "-": () => drawing.camera.by(1 / 1.4),
    f: () => drawing.fit(true),
    l: () => store.set({ mode: store.state.mode === "rings" ? "columns" : "rings" }),
    t: page.tournament,
    d: () => store.set({ theme: store.state.theme === "dark" ? "light" : "dark" }),
    "/": () => document.getElementById("search").focus(),
    "?": page.help,
    Escape: () => store.set({ selected: null }),
  };
  addEventListener("keydown", (event) => obey(event, deeds, drawing));
}

function obey(event, deeds, drawing) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  const field = event.target.closest?.("input, select, textarea, button, summary, a, [role=tab]");
  if (field && event.key === "Escape") {
    event.preventDefault();
    field.closest("details.menu")?.removeAttribute("open");
    drawing.focus();
    return;
  }
  if (field && (field.matches("input, select, textarea") || ["Enter", " "].includes(event.key)))
    return;
  if (field?.matches("[role=tab]") && MOVES.has(event.key)) return;
  if (SCROLLS.has(event.key) && event.target.closest?.("[role=tabpanel]")) return;
  const deed = deeds[event.key];
  if (!deed) return;
  event.preventDefault();
  deed();
}

const bounded = (step, length) => Math.min(Math.max(step, 0), length);
