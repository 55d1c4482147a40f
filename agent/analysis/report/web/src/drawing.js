// The canvas: draws what the store says, once a frame at most, and tells the store what the pointer does.
import { h } from "./dom.js";
import { makeCamera } from "./camera.js";
import { scale, themeColours } from "./colours.js";
import { bounds, layOut } from "./layout.js";
import { paint } from "./paint.js";
import { makePicker } from "./pick.js";
import { counted } from "./words.js";

const READABLE = 0.9;

export function makeDrawing({ facts, history, store }) {
  const label = `Tree of ${counted(facts.nodes.length, "state")}. Arrow keys move through it, Enter opens a state, ? lists all keys.`;
  const canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    "aria-label": label,
    id: "tree",
  });
  const camera = makeCamera(canvas, ask);
  const scene = { nodes: facts.nodes, scale: scale(facts.nodes), best: new Set(facts.best) };
  let pick = () => null;
  let asked = false;
  let frames = 0;

  function ask() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(draw);
  }

  function draw() {
    asked = false;
    frames += 1;
    canvas.dataset.drawn = facts.nodes.length ? paint(canvas, camera, scene) : 0;
    canvas.dataset.frames = frames;
  }

  function adopt(state, changed) {
    if (changed === null || changed.has("mode")) place(state);
    if (changed === null || changed.has("theme")) scene.theme = themeColours();
    if (changed === null || changed.has("step")) come(state.step);
    Object.assign(scene, { found: state.found, selected: state.selected, hovered: state.hovered });
    ask();
  }

  function place(state) {
    scene.mode = state.mode;
    scene.places = layOut(facts.nodes, state.mode);
    pick = makePicker(scene.places);
  }

  function come(step) {
    scene.count = history.nodesAt(step);
    scene.references = history.referencesAt(step);
    scene.current = step < history.length ? history.momentAt(step)?.node : null;
    canvas.dataset.count = scene.count;
  }

  function resize() {
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * ratio);
    canvas.height = Math.round(canvas.clientHeight * ratio);
    if (scene.places) draw();
  }

  const under = (event) => pick(camera, event.offsetX, event.offsetY, scene.count);
  canvas.addEventListener("click", (event) => store.set({ selected: under(event) }));
  canvas.addEventListener("pointermove", (event) => store.set({ hovered: under(event) }));
  canvas.addEventListener("pointerleave", () => store.set({ hovered: null }));

  return {
    element: h("div", { class: "drawing" }, canvas, tip({ facts, store, camera, scene })),
    camera,
    scene,
    fit: (slowly) => camera.fit(bounds(scene.places, scene.mode), slowly),
    show: (id) => camera.show(scene.places[id], READABLE),
    where: (id) => camera.toScreen(scene.places[id]),
    focus: () => canvas.focus(),
    view() {
      const usual = !facts.nodes.length || camera.fits(bounds(scene.places, scene.mode));
      return usual ? null : viewOf(canvas, camera, scene.places);
    },
    look({ id, at, k }) {
      if (scene.places[id]) camera.put(scene.places[id], at, k);
    },
    begin() {
      resize();
      adopt(store.state, null);
      store.listen((state, changed) => {
        adopt(state, changed);
        if (changed.has("mode")) camera.fit(bounds(scene.places, scene.mode));
      });
      camera.fit(bounds(scene.places, scene.mode));
      new ResizeObserver(resize).observe(canvas);
    },
  };
}

// What a new drawing is to show in the same way: a tree that has grown lies elsewhere, so what is in the middle is held.
function viewOf(canvas, camera, places) {
  const away = ({ x, y }) => Math.hypot(x - canvas.clientWidth / 2, y - canvas.clientHeight / 2);
  const far = places.map((place) => away(camera.toScreen(place)));
  const id = far.reduce((nearest, each, other) => (each < far[nearest] ? other : nearest), 0);
  return { id, at: camera.toScreen(places[id]), k: camera.transform.k };
}

// A few words beside the state under the pointer.
function tip({ facts, store, camera, scene }) {
  const element = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  store.listen((state, changed) => {
    if (!changed.has("hovered")) return;
    element.hidden = state.hovered === null;
    if (state.hovered === null) return;
    const node = facts.nodes[state.hovered];
    const { x, y } = camera.toScreen(scene.places[state.hovered]);
    element.replaceChildren(
      h("strong", {}, `${state.hovered} · ${node.value.toFixed(3)} · ${node.state}`),
      h("span", {}, node.tests),
      node.label ? h("span", {}, node.label) : "",
    );
    element.style.transform = `translate(${Math.round(x + 16)}px, ${Math.round(y + 12)}px)`;
  });
  return element;
}
