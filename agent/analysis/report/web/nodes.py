"""The facts about each state that the page draws at once; the rest is in the details."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent.analysis.report.summary import tally
from agent.evaluate.goal_tests import goals_of_run
from agent.run.run import Run
from agent.run.tree.node import ROOT, Node


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """An object for each node, by id."""
    goals = goals_of_run(run)
    ranked = {node for rank in run.ballots for node in rank.group}
    for node in run.tree:
        yield {
            "parents": list(node.parents),
            "value": node.value,
            "state": _state(run, node),
            "marks": _marks(run, node, compared=node.id in ranked),
            "label": node.label or ("the repository as it is" if node.id == ROOT else ""),
            "kind": node.kind,
            "policy": node.policy_id,
            "actions": sorted({action.kind for action in node.actions}),
            "files": sorted(set(node.edited)),
            "tests": tally(node.report, goals),
            "round": max(1, sum(node.id >= start for start in run.starts)),
        }


def _state(run: Run, node: Node) -> str:
    """The word for a state: the first one that applies."""
    root = run.tree.root
    words = (
        ("base", node.id == ROOT),
        ("solved", run.solved(node.id)),
        ("invalid", not node.report.valid),
        ("better", node.value > root.value),
        ("worse", node.value < root.value),
    )
    return next((word for word, true in words if true), "same")


def _marks(run: Run, node: Node, *, compared: bool) -> list[str]:
    """All further marks that apply to a state."""
    tree, sources = run.tree, run.tree.structure.sources(node.id)
    arrivals = sum(tree.proposals.edge_count(source, node.id) for source in sources)
    marks = {
        "merged": len(node.parents) > 1 or arrivals > 1 or len(sources) > 1,
        "open": tree.expandable(node.id),
        "pruned": tree.pruned(node.id),
        "refused": node.refused,
        "submitted": node.submitted,
        "failures": bool(tree.failures(node.id)),
        "compared": compared,
    }
    return [name for name, true in marks.items() if true]
