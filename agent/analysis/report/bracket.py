"""The tournaments of a run as text, for `ramify show`: the matches, the order, and the picks of the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent.actions.excerpt import printable
from agent.counting import counted
from agent.run.run import Run
from agent.solver.tournament.note import notes
from agent.untrusted import visible

_BASELINES = {
    "random": "at random",
    "first": "first finished",
    "tests": "most tests",
    "majority": "most rollouts",
    "judge": "the value's judge",
}
_Note = Mapping[str, Any]


def brackets(run: Run) -> Iterator[str]:
    """A block for each round whose rollouts were ranked."""
    for number, note in notes(run):
        yield draw(number, note)


def draw(number: int, note: _Note) -> str:
    """The ranking after a round (`agent.solver.tournament.note`), a fact a line. States are named by their numbers."""
    order = note["order"]
    if not order:
        return f"round {number}: no rollout has a patch to offer"
    rollouts = sum(entrant["rollouts"] for entrant in order)
    lines = [f"round {number}: {counted(len(order), 'patch', 'patches')} of {counted(rollouts, 'rollout')}"]
    lines += [
        f"  stage {stage}   {'; '.join(map(_match, matches))}" for stage, matches in enumerate(note["bracket"], 1)
    ]
    lines += [f"  {name:<9} {text}" for name, text in _facts(note) if text]
    return "\n".join(lines)


def _facts(note: _Note) -> Iterator[tuple[str, str]]:
    yield "order", ", ".join(map(_entrant, note["order"]))
    yield "judge", _judge(note)
    if note["confidence"] is not None:
        best = note["order"][0]["node"]
        yield "sure", f"{note['confidence']:.0%} that {best} is the strongest, if votes were independent"
    yield "error", " ".join(printable(visible(note["error"]).encode()).split())
    picks = [f"{_BASELINES.get(name, name)} {node}" for name, node in note["baselines"].items()]
    yield "baselines", ", ".join(picks)


def _match(match: _Note) -> str:
    tally, winner = dict(match["group"]), match["winner"]
    if match["by"] == "bye":
        return f"{winner} has a bye"
    others = [node for node in tally if node != winner]
    score = " to ".join(str(tally[node]) for node in (winner, *others))
    if match["by"] == "rule":
        return f"{winner} advances before {_and(others)} by rule, votes {score}"
    return f"{winner} beats {_and(others)} by {score}"


def _entrant(entrant: _Note) -> str:
    """A state with the facts that decide its place."""
    checked = 1.0 if entrant.get("checked") is None else entrant["checked"]  # earlier versions did not note it
    facts = ["solved"] if entrant["solved"] else [f"{entrant['progress']:.0%} of the goals"]
    facts += [f"strength {entrant['strength']:.2f}"] if entrant["strength"] is not None else []
    facts += [f"fails {1 - checked:.0%} of the cross-checks"] if checked < 1 else []
    facts += [f"{entrant['rollouts']} rollouts"] if entrant["rollouts"] > 1 else []
    return f"{entrant['node']} ({', '.join(facts)})"


def _judge(note: _Note) -> str:
    if not note["judge"]:
        return ""
    votes = f"{note['judge']}: {counted(note['votes'], 'vote')}, {note['for_first_shown']} for the first shown"
    more = ((note.get("ties", 0), "tie"), (note["abstained"], "abstention"))  # earlier versions noted no ties
    return "; ".join((votes, *(counted(count, what) for count, what in more if count)))


def _and(nodes: list[int]) -> str:
    return " and ".join(map(str, nodes))
