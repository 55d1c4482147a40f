"""Expand the state that looks best, less and less willingly the more often it and its like were expanded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2
from random import Random

from agent.search import Choice
from agent.tree import NodeId, Tree

__all__ = ["BestFirst"]


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Highest `value - fatigue * (log2(1 + own) + (1 + depth) * log2(1 + level))` first, the older node among equals;
    `own` are the expansions of the node, `level` those of all nodes as deep as it, in flight or ended.

    The second term keeps a crowd of half-good states from starving the few above them: by the time the root was
    expanded n times, its children together were about n ** (2/3) times, their children n ** (1/2) times, and better
    values buy a constant factor.

    A state that is no better than the one it came from is *stale*: its edit helped nothing that was measured. Stale
    states wait until no other state can be expanded.
    """

    fatigue: float = 0.25
    """What a doubling of the expansions takes off a score."""
    depth: int = 16
    """Edits a path may have."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The expandable node of the highest score."""
        del rng
        levels: Counter[int] = Counter()
        for node in tree:
            levels[tree.depth(node.id)] += tree.expansions(node.id)
        frontier = [n.id for n in tree if tree.expandable(n.id) and tree.depth(n.id) < self.depth]
        scores = {n: self.score(tree, n, levels[tree.depth(n)]) for n in frontier}
        best = max(frontier, key=lambda n: (not self._stale(tree, n), scores[n], -n), default=None)
        return None if best is None else Choice(best)

    def score(self, tree: Tree, node_id: NodeId, level: int) -> float:
        """At most the node's value."""
        tired = log2(1 + tree.expansions(node_id)) + (1 + tree.depth(node_id)) * log2(1 + level)
        return tree[node_id].value - self.fatigue * tired

    def _stale(self, tree: Tree, node_id: NodeId) -> bool:
        parent = tree.parent(node_id)
        return parent is not None and tree[node_id].value <= parent.value
