// The tournaments of a run: who met whom, by what votes, the order, and what simpler choices would have been.
import { h, openDialog, svg, table } from "./dom.js";

const BOX = { width: 150, row: 24, gap: 22, column: 210 };

export function openTournament(page) {
  const { facts } = page;
  if (!facts.tournaments.length) return;
  const shown = facts.tournaments.map((each) => tournament(page, each, () => dialog.close()));
  const dialog = openDialog("tournament", "Tournament", shown);
}

function tournament(page, note, close) {
  const go = (id) => {
    close();
    page.navigation.select(id);
  };
  return h(
    "section",
    {},
    h(
      "h2",
      {},
      page.facts.tournaments.length > 1 ? `Tournament of round ${note.round}` : "Tournament",
    ),
    note.bracket.length > 0 && h("div", { class: "wide" }, drawBracket(note.bracket, go)),
    order(note, go),
    h("p", {}, judged(note)),
    note.error && h("p", { class: "problem" }, note.error),
    note.ballots.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `Votes: ${note.ballots.length}`),
        h("ul", {}, note.ballots.map(ballot)),
      ),
  );
}

function judged({ judge, votes, for_first_shown: first, abstained, confidence, baselines }) {
  const by = judge
    ? `${judge}: ${votes} votes, ${first} for the first shown, ${abstained} abstentions. `
    : "No votes. ";
  const sure =
    confidence === null
      ? ""
      : `${Math.round(confidence * 100)} % sure, if votes were independent. `;
  const picks = Object.entries(baselines).map(([name, node]) => `${name} ${node}`);
  return by + sure + (picks.length ? `Simpler choices: ${picks.join(", ")}.` : "");
}

const ballot = ({ group, winner, judge, reason }) =>
  h(
    "li",
    {},
    h("strong", {}, `${group.join(" against ")}: ${winner ?? "no vote"}`),
    ` (${judge}) `,
    h("span", { class: "said" }, reason),
  );

function order({ order: entrants }, go) {
  const strongest = Math.max(...entrants.map((each) => each.strength ?? 0), 1e-9);
  const row = (each, place) =>
    h(
      "tr",
      {},
      h("td", {}, String(place + 1)),
      h(
        "td",
        {},
        h("button", { class: "link", onclick: () => go(each.node) }, `state ${each.node}`),
      ),
      h("td", {}, each.solved ? "solved" : `${Math.round(each.progress * 100)} % of the goals`),
      h("td", {}, each.strength === null ? "" : meter(each.strength, strongest)),
      h("td", {}, `${each.rollouts}`),
    );
  return table(["", "patch of", "tests", "strength", "rollouts"], entrants.map(row));
}

const meter = (value, max) => [
  h("meter", { min: "0", max: String(max), value: String(value) }),
  ` ${value.toFixed(2)}`,
];

function drawBracket(stages, go) {
  const placed = placeMatches(stages);
  const height =
    Math.max(...placed.flat().map(({ y, match }) => y + match.group.length * BOX.row)) + 8;
  const width = stages.length * BOX.column;
  const title = `Bracket of ${stages.length} stages`;
  const boxes = placed.flat().map((each) => [...lines(each), box(each, go)]);
  return svg(
    "svg",
    {
      class: "bracket",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": title,
    },
    boxes,
  );
}

// A match of a later stage stands in the middle of those that its entrants come from.
function placeMatches(stages) {
  const placed = [];
  stages.forEach((stage, number) => {
    let free = 4;
    const column = stage.map((match) => {
      const feeders = (placed[number - 1] ?? []).filter(({ match: m }) =>
        match.group.some(([node]) => node === m.winner),
      );
      const middle =
        feeders.reduce((sum, { y, match: m }) => sum + y + (m.group.length * BOX.row) / 2, 0) /
        feeders.length;
      const y = Math.max(free, feeders.length ? middle - (match.group.length * BOX.row) / 2 : free);
      free = y + match.group.length * BOX.row + BOX.gap;
      return { match, feeders, x: number * BOX.column + 4, y };
    });
    placed.push(column);
  });
  return placed;
}

const middleOf = ({ y, match }) => y + (match.group.length * BOX.row) / 2;

function lines(to) {
  return to.feeders.map((from) => {
    const [x, y] = [from.x + BOX.width, middleOf(from)];
    const seat = to.match.group.findIndex(([node]) => node === from.match.winner);
    const end = to.y + (seat + 0.5) * BOX.row;
    return svg("path", {
      class: "feeds",
      d: `M${x},${y} C${x + 30},${y} ${to.x - 30},${end} ${to.x},${end}`,
    });
  });
}

function box({ match, x, y }, go) {
  const seat = ([node, votes], place) => {
    const won = node === match.winner;
    const top = y + place * BOX.row;
    const score =
      match.by === "bye" ? "bye" : `${votes}${won && match.by === "rule" ? " rule" : ""}`;
    const pick = {
      tabindex: "0",
      role: "button",
      "aria-label": `state ${node}, ${score}${won ? ", goes on" : ""}`,
    };
    const onkeydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      go(node);
    };
    return svg(
      "g",
      { class: won ? "seat won" : "seat", ...pick, onclick: () => go(node), onkeydown },
      svg("rect", { x, y: top, width: BOX.width, height: BOX.row, rx: 3 }),
      svg("text", { x: x + 10, y: top + 16 }, `state ${node}`),
      svg("text", { x: x + BOX.width - 10, y: top + 16, "text-anchor": "end" }, score),
    );
  };
  return svg("g", {}, match.group.map(seat));
}
