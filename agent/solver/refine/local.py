"""Local repair: some rollouts of a later wave begin not at the base state but where an earlier one was last right.

Global retry, local repair from the first bad step, and the best of both and the original, which is kept when both are
worse, are GLoRe's. The prefix is the recorded state itself: nothing is done again.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.evaluate.transitions import Transition, transitions
from agent.prompts import render
from agent.run.commands import Order
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.untrusted import visible

__all__ = ["last_right", "repairs"]

NAMED = 5
"""Tests of each kind that a hint names."""
NAME_CHARS = 200


def repairs(run: Run, order: Sequence[NodeId], goals: Sequence[str], most: int) -> list[Order]:
    """Where at most so many rollouts begin, and the diagnosis that each is told, from the best failed rollouts on.
    `order` has the best states of rollouts, best first. Rollouts that were never better than the base state, and states
    where nothing is left to propose, are passed over."""
    paths = {rollout.best: run.tree.path(rollout.leaf) for rollout in reversed(run.rollouts())}
    found: dict[NodeId, Order] = {}
    for path in (paths[best] for best in order if best in paths):
        at = last_right(path)
        if at and run.tree.expandable(path[at].id) and path[at].id not in found:
            found[path[at].id] = Order("fork", path[at].id, _hint(path, at, goals), by="diagnosis")
    return list(found.values())[:most]


def last_right(path: Sequence[Node]) -> int:
    """The place, from 0, of the state before the first bad step of a rollout: the first of those of highest value. 0:
    none of its steps was good."""
    return max(range(len(path)), key=lambda at: (path[at].value, -at))


def _hint(path: Sequence[Node], at: int, goals: Sequence[str]) -> str:
    below = list(transitions(path, goals))[at:]
    return render(
        "refine_hint",
        bad=_step(below[0]) if below else None,
        failing=_names([goal for goal in goals if not path[at].report.passed(goal)]),
    ).strip()


def _step(shift: Transition) -> dict[str, object]:
    """What is said of the bad step."""
    return {
        "what": visible(" ".join(shift.node.label.split()))[:NAME_CHARS],
        "broken": _names(shift.broken),
        "mended": _names(shift.fixed),
        "ran": shift.node.report.valid,
    }


def _names(tests: Sequence[str]) -> list[str]:
    return [visible(test)[:NAME_CHARS] for test in tests[:NAMED]]
