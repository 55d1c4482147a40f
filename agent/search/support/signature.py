"""What two states have in common, by recorded facts only."""

from __future__ import annotations

from agent.actions import Edit, Write
from agent.measure import Outcome
from agent.run.tree.tree import NodeId, Tree

__all__ = ["ending", "touched"]


def ending(tree: Tree, node_id: NodeId) -> frozenset[tuple[str, Outcome]]:
    """How the tests of a state failed: every failed test with its outcome, flaky ones left out."""
    report, flaky = tree[node_id].report, tree.root.report.flaky
    return frozenset((test, report.outcomes[test]) for test in report.failures if test not in flaky)


def touched(tree: Tree, node_id: NodeId) -> frozenset[str]:
    """The files that were edited or written on the way from the root to a state; shell commands are not looked into."""
    actions = (action for node in tree.path(node_id) for step in node.steps for action in step.actions)
    return frozenset(action.path for action in actions if isinstance(action, (Edit, Write)))
