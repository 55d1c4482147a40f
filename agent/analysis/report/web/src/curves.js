// Resolved against budget: steps for a batch, points for repeated ones, each with its 95 % interval.
import { h, svg, table } from "./dom.js";
import { counted, percent } from "./words.js";

const SIZE = { width: 760, height: 300, left: 52, right: 16, top: 12, bottom: 40 };
// Of Okabe and Ito: people with any common colour blindness tell them apart; the dashes help everybody.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

export function drawCurves(curves, unit) {
  const most = Math.max(
    ...curves.flatMap(({ points }) => points.map(({ budget }) => budget)),
    1e-9,
  );
  const x = (budget) => SIZE.left + ((SIZE.width - SIZE.left - SIZE.right) * budget) / most;
  const y = (rate) => SIZE.height - SIZE.bottom - (SIZE.height - SIZE.top - SIZE.bottom) * rate;
  const names = curves.map(({ name }) => name).join("; ");
  const picture = svg(
    "svg",
    {
      class: "curves",
      viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
      role: "img",
      "aria-label": `Curves of ${names}`,
    },
    axes(x, y, most, unit),
    curves.map((curve, number) => draw(curve, number, x, y)),
  );
  return [picture, h("figcaption", {}, curves.map(key)), numbers(curves, unit)];
}

function axes(x, y, most, unit) {
  const rates = [0, 0.25, 0.5, 0.75, 1].map((rate) => [
    svg("line", { class: "grid", x1: x(0), x2: x(most), y1: y(rate), y2: y(rate) }),
    svg("text", { x: x(0) - 8, y: y(rate) + 4, "text-anchor": "end" }, `${100 * rate} %`),
  ]);
  const budgets = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    svg(
      "text",
      { x: x(share * most), y: y(0) + 18, "text-anchor": "middle" },
      Number((share * most).toPrecision(3)),
    ),
  );
  const title = svg(
    "text",
    { x: x(most / 2), y: SIZE.height - 4, "text-anchor": "middle" },
    `${unit} per instance`,
  );
  return [rates, budgets, title];
}

function draw({ points, repeated }, number, x, y) {
  const colour = COLOURS[number % COLOURS.length];
  const path = (rate) => stepped(points, rate, repeated, x, y);
  const band = `${path("high")} ${stepped(points, "low", repeated, x, y, true)} Z`;
  const dash = DASHES[Math.floor(number / COLOURS.length) % DASHES.length];
  return svg(
    "g",
    { stroke: colour, fill: "none" },
    points.length > 1 &&
      svg("path", { d: band, fill: colour, "fill-opacity": "0.12", stroke: "none" }),
    svg("path", { d: path("rate"), "stroke-width": "2", "stroke-dasharray": dash }),
    points.map((p) => svg("circle", { cx: x(p.budget), cy: y(p.rate), r: 3, fill: colour })),
  );
}

// A path through the points; between two of them the rate stays what it was, but for repeated batches.
function stepped(points, rate, repeated, x, y, backwards = false) {
  const corners = points.flatMap((point, at) => {
    const before = points[at - 1];
    const corner = before && !repeated ? [[x(point.budget), y(before[rate])]] : [];
    return [...corner, [x(point.budget), y(point[rate])]];
  });
  if (backwards) corners.reverse();
  return (backwards ? "L" : "M") + corners.map((corner) => corner.join(",")).join(" L");
}

function key({ name, instances }, number) {
  const line = {
    x1: 0,
    x2: 26,
    y1: 6,
    y2: 6,
    "stroke-width": 3,
    stroke: COLOURS[number % COLOURS.length],
  };
  return h(
    "span",
    {},
    svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, svg("line", line)),
    ` ${name}, ${counted(instances, "instance")}`,
  );
}

function numbers(curves, unit) {
  const row = (name, p) =>
    h(
      "tr",
      {},
      [
        name,
        Number(p.budget.toPrecision(4)),
        percent(p.rate),
        `${percent(p.low)} to ${percent(p.high)}`,
      ].map((cell) => h("td", {}, cell)),
    );
  const rows = curves.flatMap(({ name, points }) => points.map((point) => row(name, point)));
  const names = ["solver", unit, "resolved", "95 % interval"];
  return h("details", {}, h("summary", {}, "The numbers"), table(names, rows));
}
