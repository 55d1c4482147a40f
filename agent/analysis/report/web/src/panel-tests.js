// How the tests ended: those that changed against the base state first, what they said, then all others.
import { h, quiet } from "./dom.js";
import { counted } from "./words.js";

const MOST = 500;
const bad = (outcome) => outcome !== "passed" && outcome !== "skipped";

export function showTests({ id, facts, details }) {
  const { changed, only, missing, said, problem, scope, leftOut, output } = details.tests;
  const base = only ? Object.fromEntries(only.map((test) => [test, facts.base[test]])) : facts.base;
  const now = { ...base, ...changed };
  for (const test of missing) delete now[test];
  const groups = id === 0 ? ofBase(now, facts.goals) : against(facts.base, now, changed);
  return [
    problem && h("p", { class: "problem" }, problem),
    details.notes && h("p", {}, details.notes),
    groups.filter(([, tests]) => tests.length).map((group) => list(...group, now, said)),
    scope && quiet(`Measured by ${scope}.`),
    leftOut > 0 && quiet(`${counted(leftOut, "test was", "tests were")} not run.`),
    output && h("details", {}, h("summary", {}, "End of the output"), h("pre", {}, output)),
  ];
}

function ofBase(now, goals) {
  const tests = Object.keys(now);
  return [
    ["Fails before any edit", tests.filter((test) => bad(now[test])), true],
    ["Goal tests", goals, false],
    ["Passes", tests.filter((test) => !bad(now[test])), false],
  ];
}

function against(base, now, changed) {
  const tests = Object.keys(changed);
  const failing = Object.keys(now).filter((test) => bad(now[test]) && !(test in changed));
  return [
    ["Fixed", tests.filter((test) => now[test] === "passed" && bad(base[test] ?? "failed")), true],
    ["Broken", tests.filter((test) => bad(now[test]) && !bad(base[test] ?? "passed")), true],
    [
      "Fails in another way",
      tests.filter((test) => bad(now[test]) && base[test] && bad(base[test])),
      true,
    ],
    ["Still fails", failing, true],
    ["Skipped now", tests.filter((test) => now[test] === "skipped"), true],
    [
      "Passes as before",
      Object.keys(now).filter((test) => !bad(now[test]) && !(test in changed)),
      false,
    ],
  ];
}

function list(title, tests, open, now, said) {
  const item = (test) =>
    h(
      "li",
      { class: bad(now[test] ?? "failed") ? "bad" : "good" },
      ofTest(test, now[test], said[test]),
    );
  const more = tests.length - MOST;
  return h(
    "details",
    { open },
    h("summary", {}, `${title}: ${tests.length}`),
    h("ul", { class: "tests" }, tests.slice(0, MOST).map(item)),
    more > 0 && quiet(`and ${more} more`),
  );
}

function ofTest(test, outcome, text) {
  const name = h("code", {}, test);
  const word = h("span", { class: "outcome" }, outcome ?? "not run");
  return text ? [word, h("details", {}, h("summary", {}, name), h("pre", {}, text))] : [word, name];
}
