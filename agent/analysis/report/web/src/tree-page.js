// The page of one run: what is on it, and who is told of what.
import { announcer } from "./announce.js";
import { openTournament } from "./bracket.js";
import { makeDrawing } from "./drawing.js";
import { makePanel } from "./panel.js";
import { noFilters } from "./filters.js";
import { h } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { openHelp } from "./help.js";
import { makeNavigation } from "./navigation.js";
import { makeTimeline } from "./timeline.js";
import { makeToolbar } from "./toolbar.js";
import { matching } from "./filters.js";
import { keepFresh, passedOn, settle } from "./refresh.js";
import { replay } from "./replay.js";
import { makeStore } from "./store.js";
import { addressed, followTheme, remember } from "./preferences.js";

const CROWD = 120;

export function showTree(facts) {
  const history = replay(facts);
  const last = passedOn();
  const store = makeStore({
    step: history.length,
    playing: false,
    selected: null,
    hovered: null,
    found: null,
    query: "",
    filters: noFilters,
    mode: last.mode ?? usualMode(facts),
    theme: followTheme(),
    tab: last.tab ?? "diff",
  });
  const page = { facts, history, store };
  page.drawing = makeDrawing(page);
  page.navigation = makeNavigation(page);
  page.help = openHelp;
  page.tournament = () => openTournament(page);
  store.listen((state, changed) => react(page, state, changed));
  document.body.append(...parts(page));
  page.drawing.begin();
  if (last.camera) page.drawing.look(last.camera);
  settle(last);
  listenToKeys(page);
  addressed(page);
  keepFresh(facts, {
    view: () => viewOf(page),
    attended: () => attended(store.state, history),
  });
  return page;
}

const usualMode = ({ nodes }) => (nodes.length > CROWD ? "rings" : "columns");

// What a person has made of the page, for the next one; what is as usual may become another usual.
function viewOf({ facts, store, drawing }) {
  const { mode, tab } = store.state;
  return {
    mode: mode === usualMode(facts) ? undefined : mode,
    tab,
    camera: drawing.view() ?? undefined,
  };
}

// Whether something is open that a new page would not have open.
function attended({ selected, playing, step, query, filters }, history) {
  const looking = selected !== null || playing || step < history.length;
  return looking || query !== "" || filters !== noFilters;
}

function parts(page) {
  const toolbar = makeToolbar(page);
  const panel = makePanel(page);
  const timeline = makeTimeline(page);
  const stage = h("main", { class: "stage" }, page.drawing.element, panel);
  return [toolbar, stage, timeline, announcer(page)];
}

function react({ facts, store }, state, changed) {
  if (changed.has("query") || changed.has("filters")) {
    store.set({ found: matching(facts.nodes, state.filters, state.query) });
  }
  if (changed.has("theme") || changed.has("selected")) remember(state);
}
