"""Local repair: some rollouts of a later round begin at the last good state of an earlier rollout instead of the root.

From GLoRe: a global retry, a local repair from the first bad step, and a choice among these two and the original, which
is kept if both are worse. The prefix is the recorded state itself: no step is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.evaluate.transitions import Transition, transitions
from agent.prompts import render
from agent.run.commands import Order
from agent.run.grade import succeeded
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.untrusted import short_line, visible

NAMED = 5
"""The maximum number of tests of each kind that a hint names."""
NAME_CHARS = 200


def repairs(run: Run, order: Sequence[NodeId], goals: Sequence[str], most: int) -> list[Order]:
    """Return the starting points of at most `most` rollouts, each with a diagnosis as its hint, for the best rollouts
    first. `order` has the best states of rollouts, best first. Rollouts that were never better than the root or that
    succeeded as far as is known are skipped, and so are states that cannot be expanded."""
    paths = {rollout.best: run.tree.path(rollout.leaf) for rollout in reversed(run.rollouts())}
    orders: dict[NodeId, Order] = {}
    for path in (paths[best] for best in order if best in paths):
        at = last_right(path)
        repairable = at > 0 and run.tree.expandable(path[at].id) and not succeeded(path[-1], path[0], goals)
        if repairable and path[at].id not in orders:
            orders[path[at].id] = Order("fork", path[at].id, _hint(path, at, goals), by="diagnosis")
    return list(orders.values())[:most]


def last_right(path: Sequence[Node]) -> int:
    """Return the index of the state before the first bad step of a rollout, which is the first state of highest value.
    0: no step was good."""
    return max(range(len(path)), key=lambda at: (path[at].value, -at))


def _hint(path: Sequence[Node], at: int, goals: Sequence[str]) -> str:
    below = list(transitions(path, goals))[at:]
    return render(
        "refine_hint",
        bad=_step(below[0]) if below else None,
        failing=_names([goal for goal in goals if not path[at].report.passed(goal)]),
    ).strip()


def _step(transition: Transition) -> dict[str, object]:
    """Return what the hint says about the bad step."""
    return {
        "what": short_line(transition.node.label, NAME_CHARS).rstrip("."),
        "broken": _names(transition.broken),
        "mended": _names(transition.fixed),
        "ran": transition.node.report.valid,
    }


def _names(tests: Sequence[str]) -> list[str]:
    return [visible(test)[:NAME_CHARS] for test in tests[:NAMED]]
