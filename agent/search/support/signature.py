"""Signatures by which states are compared, computed from recorded facts only."""

from __future__ import annotations

from agent.measure import Outcome
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree


def ending(tree: Tree, node_id: NodeId) -> frozenset[tuple[str, Outcome]]:
    """Every failed test of a state with its outcome, flaky ones excluded."""
    report, flaky = tree[node_id].report, tree.root.report.flaky
    return frozenset((test, report.outcomes[test]) for test in report.failures if test not in flaky)


def touched(tree: Tree, node_id: NodeId) -> frozenset[str]:
    """The files edited or written on the path from the root to a state, except by shell commands."""
    return frozenset(path for node in tree.path(node_id) for path in node.edited)
