"""Expand the state that looks best, less and less willingly the more often it was expanded."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from random import Random

from agent.tree import NodeId, Tree

__all__ = ["BestFirst"]


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Highest `value - fatigue * log2(1 + expansions)` first, the older node among equals.

    A state that is no better than the one it came from is *stale*: its edit helped nothing that was measured. Stale
    states wait until no other state can be expanded.
    """

    fatigue: float = 0.05
    """What a doubling of a node's expansions takes off its score."""
    depth: int = 16
    """Edits a path may have."""

    def select(self, tree: Tree, rng: Random) -> NodeId | None:
        """The expandable node of the highest score."""
        del rng
        frontier = [n.id for n in tree if tree.expandable(n.id) and tree.depth(n.id) < self.depth]
        return max(frontier, key=lambda n: (not self._stale(tree, n), self.score(tree, n), -n), default=None)

    def score(self, tree: Tree, node_id: NodeId) -> float:
        """At most the node's value; expansions in flight count like finished ones."""
        return tree[node_id].value - self.fatigue * log2(1 + tree.expansions(node_id))

    def _stale(self, tree: Tree, node_id: NodeId) -> bool:
        parent = tree.parent(node_id)
        return parent is not None and tree[node_id].value <= parent.value
