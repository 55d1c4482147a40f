"""Counts of all measurements of states, repeated ones included."""

from __future__ import annotations

from collections import Counter

from agent.run.tree.tree import NodeId, Tree
from agent.search.support.below import UNIT, exact, sums

__all__ = ["Measurements"]


class Measurements:
    """A view (`agent.run.tree.tree.View`): measurements per subtree and in the whole tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._again: Counter[NodeId] = Counter()
        self._begun: Counter[NodeId] = Counter()
        self._pending: Counter[NodeId] = Counter()
        self._below = sums(tree, 2)
        self.begun = 0
        """Measurements begun in the whole tree, each node's first included."""
        self.expanding = 0
        """Expansions in flight in the whole tree."""

    def changed(self, node_id: NodeId) -> None:
        """Count new measurements and expansions of the node."""
        tree = self._tree
        begun, pending = 1 + tree.begun(node_id, "measure"), tree.pending(node_id)
        self.begun += begun - self._begun[node_id]
        self.expanding += pending - self._pending[node_id]
        self._begun[node_id], self._pending[node_id] = begun, pending
        _, *again = tree.evaluations(node_id)
        new = again[self._again[node_id] :]
        self._again[node_id] = len(again)
        if new:
            self._below.note(node_id, (len(new), sum(exact(evaluation.value) for evaluation in new)))

    def changed_below(self, node_id: NodeId) -> None:
        """Not needed: sums over subtrees are kept by an aggregate."""

    def below(self, node_id: NodeId) -> tuple[int, float]:
        """The number of measurements in the node's subtree, and the sum of their values."""
        count, total = self._below[node_id]
        return self._tree.visits(node_id) + count, self._tree.value_sum(node_id) + total / UNIT
