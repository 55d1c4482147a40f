"""Comparison of two runs: whether they are the same, and if not, where they first differ.

The comparison covers the states in order (parents; actions, message and usage of each turn; content, tests, value,
flags), the edges, the results of all expansions, the final result and the patch. It ignores the output of commands,
times, the number of test runs, and the usage of expansions that did not end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.counting import shown
from agent.run.events import Added, Event, Failed, Merged, Remeasured
from agent.run.run import Run
from agent.run.tree.node import Node

SHOWN = 200
"""How many characters of a value are shown."""
BASE = "state 0: the content"
ANOTHER_BASE = ": the checkout, or what is installed on this machine, has changed in between"


def first_difference(old: Run, new: Run) -> str:
    """The first difference between a run and an older one, in words; empty if they are the same."""
    for (what, was), (_, now) in zip(_facts(old, new), _facts(new, old), strict=True):
        if was != now:
            why = ANOTHER_BASE if what == BASE else ""
            return f"{what} is {shown(now, SHOWN)}, and was {shown(was, SHOWN)}{why}"
    return ""


def ends_expansion(event: Event) -> bool:
    """Whether the event ends an expansion."""
    return bool(event.node.parents) if isinstance(event, Added) else isinstance(event, (Merged, Remeasured, Failed))


def _facts(run: Run, other: Run) -> Iterator[tuple[str, Any]]:
    """The compared facts with their names, which are the same for both runs."""
    for node_id in range(min(len(run.tree), len(other.tree))):
        for name, value in _of_node(run.tree[node_id]).items():
            yield f"state {node_id}: {name}", value
    yield "the number of states", len(run.tree)
    yield "the edges", sorted(run.tree.structure.edges())
    for node in run.tree:
        yield f"state {node.id}: the result of its expansions", run.tree.attempts(node.id)
    if run.ended is not None and other.ended is not None:
        yield "the result", (run.ended.status, run.ended.best, run.ended.verified)
        yield "the patch", run.ended.patch_blob


def _of_node(node: Node) -> dict[str, Any]:
    return {
        "parents": node.parents,
        "policy": node.policy_id,
        "kind": node.kind,
        "label": node.label,
        "the turns": [(step.actions, step.message, step.usage) for step in node.steps],
        "the content": node.state_hash,
        "the tests": (node.report.outcomes, node.report.valid),
        "the value": node.evaluation,
        "the prior": node.prior,
        "terminal": node.terminal,
        "refused": node.refused,
    }
