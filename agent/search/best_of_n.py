"""N independent rollouts from the base state, none of which learns from another."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agent.search import Choice
from agent.tree import NodeId, Tree

__all__ = ["BestOfN"]


@dataclass(frozen=True, slots=True)
class BestOfN:
    """Finish the rollouts that were begun, oldest first, then begin the next. A rollout ends when its policy submits,
    when it is `depth` nodes long or when an expansion leads nowhere new."""

    n: int = 8
    """Rollouts."""
    depth: int = 8
    """Nodes a rollout may have."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The end of the oldest unfinished rollout, else the root while fewer than `n` were begun."""
        del rng
        root = tree.root.id
        for node in tree:
            if node.id != root and tree.expandable(node.id) and self._goes_on(tree, node.id):
                return Choice(node.id)
        return Choice(root) if tree.expandable(root) and tree.expansions(root) < self.n else None

    def _goes_on(self, tree: Tree, node_id: NodeId) -> bool:
        return tree.expansions(node_id) == 0 and tree.depth(node_id) < self.depth
