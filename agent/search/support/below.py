"""Subtree facts for views, brought up to date when they are read."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable
from operator import add

from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree

UNIT = 1 << 53
"""The whole number that stands for 1: sums of whole numbers do not depend on the order of their terms."""


def exact(value: float) -> int:
    """A value in [0, 1] as a whole number of `1 / UNIT`."""
    return round(value * UNIT)


def sums(tree: Tree, numbers: int) -> SubtreeAggregate[tuple[int, ...]]:
    """Whole numbers of each node, summed over its subtree."""
    return SubtreeAggregate(tree.structure, (0,) * numbers, _plus)


class DirtyChildren:
    """Nodes in whose subtrees something changed, by their parents. Changes are backed up when a node is asked for."""

    def __init__(self, tree: Tree) -> None:
        self._structure = tree.structure
        self._changed: set[NodeId] = set()
        self._children: defaultdict[NodeId, set[NodeId]] = defaultdict(set)

    def below(self, node_id: NodeId) -> None:
        """Something changed in the subtree of the node, and so in those of all above it."""
        self._changed.add(node_id)

    def children(self, node_id: NodeId) -> set[NodeId]:
        """The node's children whose subtrees changed since they were asked for last."""
        for changed in self._structure.ancestors(self._changed):
            if (parent := self._structure.parent(changed)) is not None:
                self._children[parent].add(changed)
        self._changed.clear()
        return self._children.pop(node_id, set())


class RankedChildren:
    """The children of each node with open nodes in their subtrees, sorted by rank. A rank is computed again when
    something changed in the child's subtree."""

    def __init__(self, tree: Tree, rank: Callable[[NodeId], float]) -> None:
        self._tree = tree
        self._rank = rank
        self._dirty = DirtyChildren(tree)
        self._ranked: defaultdict[NodeId, list[tuple[float, NodeId]]] = defaultdict(list)
        self._entry: dict[NodeId, tuple[float, NodeId]] = {}

    def below(self, node_id: NodeId) -> None:
        """Mark the node as in `DirtyChildren`."""
        self._dirty.below(node_id)

    def of(self, node_id: NodeId) -> list[tuple[float, NodeId]]:
        """Pairs of a rank and a child, the lowest rank first, among equals the oldest. Callers must not change the
        list."""
        ranked = self._ranked[node_id]
        for child in self._dirty.children(node_id):
            if child in self._entry:
                del ranked[bisect_left(ranked, self._entry.pop(child))]
            if self._tree.open_below(child):
                self._entry[child] = (self._rank(child), child)
                insort(ranked, self._entry[child])
        return ranked


def _plus(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(add, some, others))
