// Why a state is there: each selection on the way to it, with the numbers that were compared.
import { h, named, quiet, table } from "./dom.js";
import { detailsOf } from "./facts.js";
import { path } from "./panel.js";

const ACTS = { expand: "expanded", fuse: "fused", measure: "measured again" };
const OUTCOMES = {
  added: "made state",
  merged: "led to state",
  measured: "was measured again:",
  failed: "failed:",
};
const OTHERS = [
  ["merged", "Other proposals that led here"],
  ["measured", "Measured again"],
  ["failed", "Attempts that failed"],
];

export async function showWhy({ page, facts, id, details }) {
  const way = await Promise.all(path(facts, id).slice(1).map(detailsOf));
  const group = ([outcome, title]) => {
    const some = details.others.filter((each) => each.outcome === outcome);
    return some.length
      ? h("details", {}, h("summary", {}, `${title}: ${some.length}`), some.map(draw(page)))
      : null;
  };
  return [
    worth(details),
    way.length ? null : quiet("The base state: no selection led to it."),
    way.map(({ made }) => made && draw(page)(made)),
    OTHERS.map(group),
  ];
}

function worth({ parts, prior, visits, mean, measured }) {
  const rows = [
    ...Object.entries(parts),
    ["prior", prior],
    ["visits", visits],
    ["mean below", mean],
  ];
  const again = measured.length > 1 ? [["measured as", measured.map(short).join(", ")]] : [];
  const values = [...rows, ...again].map(([name, value]) => [name, short(value)]);
  return h("table", { class: "worth" }, h("caption", {}, "Value"), named(values));
}

const draw = (page) => (selection) => {
  const { number, expanded, outcome, led_to: ledTo, label, choice } = selection;
  const act = ACTS[choice?.act ?? "expand"];
  const other = choice?.other != null ? ` with ${choice.other}` : "";
  return h(
    "section",
    { class: "selection" },
    h(
      "h3",
      {},
      `Selection ${number}: `,
      page.navigation.link(expanded),
      ` was ${act}${other} and ${OUTCOMES[outcome]} `,
      ledTo === null ? "" : page.navigation.link(ledTo),
    ),
    label && h("p", { class: "label" }, label),
    reasons(choice),
  );
};

function reasons(choice) {
  if (!choice) return quiet("The journal does not say why: an older version wrote it.");
  const by =
    choice.order !== null ? `Asked for (order ${choice.order}). ${choice.hint}` : choice.because;
  const table = choice.reasons.length
    ? compared(choice.reasons)
    : quiet("The search gave no reasons.");
  return [by && h("p", {}, by), table];
}

function compared(reasons) {
  const names = [
    ...new Set(
      reasons.flatMap((r) => [...Object.keys(r.terms), ...Object.keys(r.rival_terms ?? {})]),
    ),
  ];
  names.sort((a, b) => (b === "score") - (a === "score"));
  const cells = (terms) =>
    names.map((name) => h("td", {}, name in (terms ?? {}) ? short(terms[name]) : ""));
  const rows = (r) => [
    h(
      "tr",
      { class: "taken" },
      h("th", { scope: "row" }, `taken ${r.node}`),
      h("td", {}, String(r.among)),
      cells(r.terms),
    ),
    r.rival !== null &&
      h("tr", {}, h("th", { scope: "row" }, `rival ${r.rival}`), h("td"), cells(r.rival_terms)),
  ];
  return h("div", { class: "wide" }, table(["", "among", ...names], reasons.map(rows)));
}

export const short = (value) =>
  typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
