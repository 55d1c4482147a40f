"""What views know of subtrees, brought up to date when it is asked for."""

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
"""One, where values are summed as whole numbers, so that a sum is the same in whatever order it is made."""


def exact(value: float) -> int:
    """A value in [0, 1] as a whole number of `1 / UNIT`."""
    return round(value * UNIT)


def and_above(tree: Tree, nodes: Iterable[NodeId]) -> set[NodeId]:
    """These nodes and all above them."""
    passed = set[NodeId]()
    for node_id in nodes:
        above: NodeId | None = node_id
        while above is not None and above not in passed:
            passed.add(above)
            above = tree.above(above)
    return passed


def sums(tree: Tree, numbers: int) -> SubtreeAggregate[tuple[int, ...]]:
    """Whole numbers of each node, summed over its subtree."""
    return SubtreeAggregate(tree.lineage, (0,) * numbers, _plus)


class DirtyChildren:
    """Nodes in whose subtrees something changed, by their parents. A change is carried up as a note is
    (`agent.run.tree.aggregates`): to the next station, on from station to station, and to the nodes between when one is
    asked."""

    def __init__(self, tree: Tree) -> None:
        self._lineage = tree.lineage
        self._lowest: set[NodeId] = set()
        self._children: defaultdict[NodeId, set[NodeId]] = defaultdict(set)
        self._owed: defaultdict[NodeId, set[NodeId]] = defaultdict(set)
        """By station, those next below it from which on nothing was carried to the nodes between."""

    def below(self, node_id: NodeId) -> None:
        """Something changed in the subtree of the node, and so in those of all above it."""
        self._lowest.add(node_id)

    def children(self, node_id: NodeId) -> set[NodeId]:
        """The node's children that were stirred since they were asked for last."""
        if self._lowest:
            self._carry_up()
        if owed := self._owed.get(station := self._lineage.station(node_id)):
            self._pay(owed)
            del self._owed[station]
        return self._children.pop(node_id, set())

    def _pay(self, stations: set[NodeId]) -> None:
        passed = set[NodeId]()
        for station in stations:
            for each in takewhile(lambda each: each not in passed, self._lineage.between(station)):
                passed.add(each)
                self._stir(each)

    def _carry_up(self) -> None:
        passed = set[NodeId]()
        for node_id in self._lowest:
            each: NodeId | None = node_id
            while each is not None and each not in passed:
                passed.add(each)
                self._stir(each)
                station = self._lineage.station(each)
                if each != station:
                    each = self._lineage.above(each)
                elif (each := self._lineage.next_station(station)) is not None:
                    self._owed[each].add(station)
        self._lowest.clear()

    def _stir(self, node_id: NodeId) -> None:
        if (above := self._lineage.above(node_id)) is not None:
            self._children[above].add(node_id)


class RankedChildren:
    """The children of each node that something may be expanded below, ranked anew when they were stirred."""

    def __init__(self, tree: Tree, rank: Callable[[NodeId], float]) -> None:
        self._tree = tree
        self._rank = rank
        self._stirred = DirtyChildren(tree)
        self._ranked: defaultdict[NodeId, list[tuple[float, NodeId]]] = defaultdict(list)
        self._place: dict[NodeId, tuple[float, NodeId]] = {}

    def below(self, node_id: NodeId) -> None:
        """Something changed in the subtree of the node, and so in those of all above it."""
        self._stirred.below(node_id)

    def of(self, node_id: NodeId) -> list[tuple[float, NodeId]]:
        """Each child with its rank, the lowest first and the oldest among equals. The list is not to be changed."""
        ranked = self._ranked[node_id]
        for child in self._stirred.children(node_id):
            if child in self._place:
                del ranked[bisect_left(ranked, self._place.pop(child))]
            if self._tree.open_below(child):
                self._place[child] = (self._rank(child), child)
                insort(ranked, self._place[child])
        return ranked


def _plus(some: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(add, some, others))
