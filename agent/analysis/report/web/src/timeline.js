// The search event by event: a slider, and above it the best value so far and every state's own.
import { h } from "./dom.js";
import { scale, themeColours } from "./colours.js";
import { counted } from "./words.js";

const TICK_MS = 60;
const PLAY_MS = 20_000;

export function makeTimeline(page) {
  const { facts, history, store } = page;
  const strip = h("canvas", { class: "strip", "aria-hidden": "true" });
  const slider = h("input", {
    type: "range",
    id: "slider",
    min: "0",
    max: String(history.length),
    value: String(history.length),
    "aria-label": "Events of the search",
    oninput: () => store.set({ step: Number(slider.value), playing: false }),
  });
  const play = h("button", {
    id: "play",
    onclick: () => store.set({ playing: !store.state.playing }),
  });
  const said = h("output", { class: "moment", for: "slider" });
  const sums = h("span", { class: "sums" });

  function show(state) {
    slider.value = String(state.step);
    slider.setAttribute("aria-valuetext", `event ${state.step} of ${history.length}`);
    play.textContent = state.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", state.playing ? "Pause" : "Play the search");
    const moment = history.momentAt(state.step);
    said.textContent = moment ? told(moment) : "before the search";
    sums.textContent = moment ? spent(moment, history, state.step) : "";
  }

  store.listen((state, changed) => {
    if (changed.has("playing") && state.playing) start(page);
    if (changed.has("step") || changed.has("playing")) show(state);
    if (changed.has("theme")) drawStrip(strip, facts, history);
  });
  show(store.state);
  new ResizeObserver(() => drawStrip(strip, facts, history)).observe(strip);
  const line = h("div", { class: "line" }, said, sums);
  return h(
    "section",
    { class: "timeline", "aria-label": "Replay of the search" },
    play,
    h("div", { class: "track" }, line, strip, slider),
  );
}

const VERBS = {
  added: "made",
  merged: "led again to",
  remeasured: "measured again",
  failed: "failed at",
};

function told({ kind, node, at, text }) {
  const from = at != null && kind !== "failed" ? `from ${at}: ` : "";
  const head = VERBS[kind] ? `${VERBS[kind]} state ${node}` : node != null ? `state ${node}` : "";
  return [from + head, text].filter(Boolean).join(" — ");
}

function spent({ s, runs, calls, tokens, usd, unpriced }, history, step) {
  const price = unpriced ? "price unknown" : `$${usd.toFixed(2)}`;
  const models = calls
    ? ` · ${counted(calls, "model call")} · ${counted(tokens, "token")} · ${price}`
    : "";
  return `event ${step} of ${history.length} · ${s.toFixed(0)} s · ${counted(runs, "test run")}${models}`;
}

// Plays on from here, from the beginning where it is at the end.
function start({ history, store }) {
  if (store.state.step >= history.length) store.set({ step: 0 });
  const by = Math.max(1, Math.round((history.length * TICK_MS) / PLAY_MS));
  const tick = setInterval(() => {
    const step = Math.min(store.state.step + by, history.length);
    if (!store.state.playing || step >= history.length) clearInterval(tick);
    if (store.state.playing) store.set({ step, playing: step < history.length });
  }, TICK_MS);
}

function drawStrip(strip, facts, history) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [strip.clientWidth, strip.clientHeight];
  Object.assign(strip, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const context = strip.getContext("2d");
  context.scale(ratio, ratio);
  const { low, high, of } = scale(facts.nodes);
  const x = (step) => 8 + ((width - 16) * step) / Math.max(history.length, 1);
  const y = (value) => height - 6 - ((height - 12) * (value - low)) / (high - low);
  drawBest(context, history, x, (id) => y(facts.nodes[id].value));
  context.strokeStyle = themeColours().outline;
  context.lineWidth = 1;
  const size = Math.min(4, Math.max(1.2, width / history.length / 3));
  facts.nodes.forEach(({ value }, id) => {
    context.beginPath();
    context.arc(x(history.stepOf(id)), y(value), size, 0, 2 * Math.PI);
    context.fillStyle = of(value);
    context.fill();
    if (size > 2) context.stroke();
  });
}

// Steps: the best value stays until a better one is found.
function drawBest(context, history, x, y) {
  let last = null;
  context.beginPath();
  for (let step = 1; step <= history.length; step += 1) {
    const best = history.bestAt(step);
    if (best === null) continue;
    if (last !== null && last !== best) context.lineTo(x(step), y(last));
    context.lineTo(x(step), y(best));
    last = best;
  }
  context.strokeStyle = themeColours().accent;
  context.lineWidth = 1.5;
  context.stroke();
}
