"""Monte Carlo tree search: UCT over the mean value of subtrees, with progressive widening."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt
from random import Random

from agent.search import Choice
from agent.tree import NodeId, Tree

__all__ = ["Mcts"]


@dataclass(frozen=True, slots=True)
class Mcts:
    """Descend from the root by the highest upper confidence bound until a node may have another child.

    The bound of a child is `mean + c * sqrt(ln N / n)`, with `mean` in [0, 1] the mean value of its subtree, `n` the
    visits of the child and `N` those of its parent. An expansion in flight is a visit of value 0 (virtual loss). A
    node may have another child while it has fewer than `widen * N ** alpha` of them (progressive widening).
    """

    c: float = 1.4
    """Weight of exploration, above 0."""
    widen: float = 2.0
    alpha: float = 0.5
    """In [0, 1]: 0 keeps the width at `widen`, 1 lets it grow with the visits."""
    depth: int = 32
    """Edits a path may have."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The node at which the descent ends."""
        if not tree.open_below(tree.root.id):
            return None
        node_id = tree.root.id
        while not self._may_widen(tree, node_id):
            below = [c.id for c in tree.children(node_id) if tree.open_below(c.id)]
            if not below:
                return Choice(node_id) if self._open(tree, node_id) else None
            rng.shuffle(below)
            node_id = max(below, key=lambda child: self.bound(tree, child))
        return Choice(node_id)

    def bound(self, tree: Tree, node_id: NodeId) -> float:
        """The upper confidence bound of a node below the root."""
        parent = tree.parent(node_id)
        assert parent is not None
        visits = tree.visits(node_id) + tree.pending_below(node_id)
        above = tree.visits(parent.id) + tree.pending_below(parent.id)
        return tree.value_sum(node_id) / visits + self.c * sqrt(log(above) / visits) if visits else inf

    def _may_widen(self, tree: Tree, node_id: NodeId) -> bool:
        visits = tree.visits(node_id) + tree.pending_below(node_id)
        return self._open(tree, node_id) and tree.expansions(node_id) < self.widen * visits**self.alpha

    def _open(self, tree: Tree, node_id: NodeId) -> bool:
        return tree.expandable(node_id) and tree.depth(node_id) < self.depth
