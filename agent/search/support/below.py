"""Subtree facts for views, brought up to date when they are read."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import takewhile
from operator import add

from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.tree import NodeId, Tree

__all__ = ["UNIT", "DirtyChildren", "RankedChildren", "and_above", "exact", "sums"]

UNIT = 1 << 53
"""The whole number that stands for 1: sums of whole numbers do not depend on the order of their terms."""


def exact(value: float) -> int:
    """A value in [0, 1] as a whole number of `1 / UNIT`."""
    return round(value * UNIT)


def and_above(tree: Tree, nodes: Iterable[NodeId]) -> set[NodeId]:
    """These nodes and all their ancestors."""
    closure = set[NodeId]()
    for node_id in nodes:
        ancestor: NodeId | None = node_id
        while ancestor is not None and ancestor not in closure:
            closure.add(ancestor)
            ancestor = tree.above(ancestor)
    return closure


def sums(tree: Tree, numbers: int) -> SubtreeAggregate[tuple[int, ...]]:
    """For each node, tuples of this many whole numbers, summed over its subtree."""
    return SubtreeAggregate(tree.lineage, (0,) * numbers, _plus)


class DirtyChildren:
    """Marks the nodes in whose subtrees something changed, grouped by parent. A mark is backed up as an aggregate is
    (`agent.run.tree.aggregates`): node by node to the next station, then from station to station, and to the nodes
    between two stations when one of them is read."""

    def __init__(self, tree: Tree) -> None:
        self._lineage = tree.lineage
        self._lowest: set[NodeId] = set()
        self._children: defaultdict[NodeId, set[NodeId]] = defaultdict(set)
        self._deferred: defaultdict[NodeId, set[NodeId]] = defaultdict(set)
        """By station, the next stations below it whose marks have not reached the nodes between."""

    def below(self, node_id: NodeId) -> None:
        """Mark the node, because something changed in its subtree, and with it all its ancestors."""
        self._lowest.add(node_id)

    def children(self, node_id: NodeId) -> set[NodeId]:
        """The node's children that were marked since this was last called."""
        if self._lowest:
            self._back_up()
        if deferred := self._deferred.get(station := self._lineage.station(node_id)):
            self._flush(deferred)
            del self._deferred[station]
        return self._children.pop(node_id, set())

    def _flush(self, stations: set[NodeId]) -> None:
        marked = set[NodeId]()
        for station in stations:
            for node_id in takewhile(lambda node_id: node_id not in marked, self._lineage.between(station)):
                marked.add(node_id)
                self._mark(node_id)

    def _back_up(self) -> None:
        marked = set[NodeId]()
        for lowest in self._lowest:
            node_id: NodeId | None = lowest
            while node_id is not None and node_id not in marked:
                marked.add(node_id)
                self._mark(node_id)
                station = self._lineage.station(node_id)
                if node_id != station:
                    node_id = self._lineage.above(node_id)
                elif (node_id := self._lineage.next_station(station)) is not None:
                    self._deferred[node_id].add(station)
        self._lowest.clear()

    def _mark(self, node_id: NodeId) -> None:
        if (parent := self._lineage.above(node_id)) is not None:
            self._children[parent].add(node_id)


class RankedChildren:
    """The children of each node with open nodes in their subtrees, sorted by rank. A rank is computed again when
    something changed in the child's subtree."""

    def __init__(self, tree: Tree, rank: Callable[[NodeId], float]) -> None:
        self._tree = tree
        self._rank = rank
        self._dirty = DirtyChildren(tree)
        self._ranked: defaultdict[NodeId, list[tuple[float, NodeId]]] = defaultdict(list)
        self._place: dict[NodeId, tuple[float, NodeId]] = {}

    def below(self, node_id: NodeId) -> None:
        """Mark the node as in `DirtyChildren`."""
        self._dirty.below(node_id)

    def of(self, node_id: NodeId) -> list[tuple[float, NodeId]]:
        """Pairs of a rank and a child, the lowest rank first, among equals the oldest. Callers must not change the
        list."""
        ranked = self._ranked[node_id]
        for child in self._dirty.children(node_id):
            if child in self._place:
                del ranked[bisect_left(ranked, self._place.pop(child))]
            if self._tree.open_below(child):
                self._place[child] = (self._rank(child), child)
                insort(ranked, self._place[child])
        return ranked


def _plus(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(add, some, others))
