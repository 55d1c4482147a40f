"""Subtree facts for views, brought up to date when they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from operator import add

from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.support.ranking import Ranking


def sums(tree: Tree, numbers: int) -> SubtreeAggregate[tuple[int, ...]]:
    """Return an aggregate of whole numbers for each node, summed over its subtree."""
    return SubtreeAggregate(tree.structure, (0,) * numbers, _plus)


class RankedChildren:
    """The children of each node with open nodes in their subtrees, ranked by score. A score is computed again when
    something changed in the child's subtree. Changes are backed up when a node is asked for."""

    def __init__(self, tree: Tree, score: Callable[[NodeId], float]) -> None:
        self._tree = tree
        self._score = score
        self._changed: set[NodeId] = set()
        self._dirty: defaultdict[NodeId, set[NodeId]] = defaultdict(set)
        """By parent: the children in whose subtrees something changed since they were ranked."""
        self._rankings: defaultdict[NodeId, Ranking] = defaultdict(Ranking)

    def below(self, node_id: NodeId) -> None:
        """Note that something changed in the subtree of the node, and so in those of all its ancestors."""
        self._changed.add(node_id)

    def of(self, node_id: NodeId) -> Ranking:
        """Return the ranking of the node's children."""
        structure, ranking = self._tree.structure, self._rankings[node_id]
        for changed in structure.ancestors(self._changed):
            if (parent := structure.parent(changed)) is not None:
                self._dirty[parent].add(changed)
        self._changed.clear()
        for child in self._dirty.pop(node_id, ()):
            ranking.put(child, self._score(child) if self._tree.open_below(child) else None)
        return ranking


def _plus(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(add, some, others))
