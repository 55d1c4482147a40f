"""The tournaments of a run as text, for `ramify show`: who met whom, the order, and what baselines would choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent.actions.excerpt import printable
from agent.run.run import Run
from agent.solver.tournament.note import notes
from agent.untrusted import visible

__all__ = ["brackets", "draw"]

_BASELINES = {
    "random": "at random",
    "first": "first finished",
    "tests": "most tests",
    "majority": "most rollouts",
    "judge": "the value's judge",
}
_Note = Mapping[str, Any]


def brackets(run: Run) -> Iterator[str]:
    """A block for each wave whose rollouts were ranked."""
    for wave, note in notes(run):
        yield draw(wave, note)


def draw(wave: int, note: _Note) -> str:
    """One ranking (`agent.solver.tournament.note`), a fact a line. States are named by their numbers."""
    order = note["order"]
    if not order:
        return f"wave {wave}: no rollout has a patch to offer"
    count = sum(each["rollouts"] for each in order)
    lines = [f"wave {wave}: {_count(len(order), 'patch', 'patches')} of {_count(count, 'rollout', 'rollouts')}"]
    lines += [f"  stage {number}   {_stage(stage)}" for number, stage in enumerate(note["bracket"], 1)]
    lines += [f"  {name:<9} {text}" for name, text in _facts(note) if text]
    return "\n".join(lines)


def _facts(note: _Note) -> Iterator[tuple[str, str]]:
    yield "order", ", ".join(_place(each) for each in note["order"])
    yield "judge", _judge(note)
    if note["confidence"] is not None:
        best = note["order"][0]["node"]
        yield "sure", f"{note['confidence']:.0%} that {best} is the strongest, if votes were independent"
    yield "error", " ".join(printable(visible(note["error"]).encode()).split())
    picks = [f"{_BASELINES.get(name, name)} {node}" for name, node in note["baselines"].items()]
    yield "baselines", ", ".join(picks)


def _stage(stage: list[_Note]) -> str:
    return "; ".join(map(_match, stage))


def _match(match: _Note) -> str:
    tally, winner = dict(match["group"]), match["winner"]
    if match["by"] == "bye":
        return f"{winner} has a bye"
    others = [node for node in tally if node != winner]
    score = " to ".join(str(tally[node]) for node in (winner, *others))
    if match["by"] == "rule":
        return f"{winner} goes on before {_and(others)} by rule, votes {score}"
    return f"{winner} beats {_and(others)} by {score}"


def _place(entrant: _Note) -> str:
    """A state, and why it stands where it stands."""
    checked = 1.0 if entrant.get("checked") is None else entrant["checked"]  # earlier versions did not note it
    facts = ["solved"] if entrant["solved"] else [f"{entrant['progress']:.0%} of the goals"]
    facts += [f"strength {entrant['strength']:.2f}"] if entrant["strength"] is not None else []
    facts += [f"fails {1 - checked:.0%} of the cross-checks"] if checked < 1 else []
    facts += [f"{entrant['rollouts']} rollouts"] if entrant["rollouts"] > 1 else []
    return f"{entrant['node']} ({', '.join(facts)})"


def _judge(note: _Note) -> str:
    if not note["judge"]:
        return ""
    votes = (
        f"{note['judge']}: {_count(note['votes'], 'vote', 'votes')}, {note['for_first_shown']} for who was shown first"
    )
    return votes + (f"; {_count(note['abstained'], 'abstention', 'abstentions')}" if note["abstained"] else "")


def _and(nodes: list[int]) -> str:
    return " and ".join(map(str, nodes))


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
