// A served page of a search that is still running loads itself anew, but never under a person who reads or types. What a
// person had made of the page passes on to the next one: what the page itself says, where it was scrolled, and the focus.
import { keepView, takeView } from "./preferences.js";

const SCROLLED = ".report, .panel, .wide";
const WAITING = "Updates are paused while you read, select or type.";
const READ_OR_TYPED_IN = "input:not([type=range]), select, textarea";

export const passedOn = () => takeView() ?? {};

export function keepFresh(facts, { view, attended = () => false }) {
  if (!facts.refresh_s) return;
  setInterval(() => {
    if (document.hidden) return;
    if (busy() || attended()) return say(WAITING);
    keepView({ ...view(), scrolled: scrolled(), focus: document.activeElement.id });
    location.reload();
  }, 1000 * facts.refresh_s);
}

export function settle({ scrolled = [], focus }) {
  const elements = document.querySelectorAll(SCROLLED);
  scrolled.forEach(([left, top], at) => elements[at]?.scrollTo(left, top));
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

function say(words) {
  const place = document.querySelector(".gap");
  if (place.textContent !== words) place.textContent = words;
}

const scrolled = () =>
  Array.from(document.querySelectorAll(SCROLLED), (each) => [each.scrollLeft, each.scrollTop]);

function busy() {
  const opened = document.querySelector("details[open], dialog[open]");
  return opened || document.activeElement.matches(READ_OR_TYPED_IN) || !getSelection().isCollapsed;
}
