"""What views know of subtrees, brought up to date when it is asked for: all changes together, each node once.

A node's id is higher than those of all nodes above it. What is passed upwards, the highest id first, so passes a node
after all that is below it, and a chain of n nodes is taken in by n steps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from agent.tree import NodeId, Tree

__all__ = ["UNIT", "Siblings", "Stirred", "Sums", "and_above", "exact"]

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


class Sums:
    """Whole numbers of each node, summed over its subtree."""

    def __init__(self, tree: Tree, numbers: int) -> None:
        self._tree = tree
        self._none = (0,) * numbers
        self._sums: dict[NodeId, tuple[int, ...]] = {}
        self._owed: dict[NodeId, tuple[int, ...]] = {}
        """What is missing in a node's sums, and with it in those of all above."""

    def add(self, node_id: NodeId, *amounts: int) -> None:
        """To the node, and so to the sums of all above it."""
        self._owed[node_id] = _plus(self._owed.get(node_id, self._none), amounts)

    def __getitem__(self, node_id: NodeId) -> tuple[int, ...]:
        if self._owed:
            self._settle()
        return self._sums.get(node_id, self._none)

    def _settle(self) -> None:
        owed, waiting = self._owed, [-node_id for node_id in self._owed]
        heapify(waiting)
        while waiting:
            node_id = -heappop(waiting)
            amounts = owed.pop(node_id)
            self._sums[node_id] = _plus(self._sums.get(node_id, self._none), amounts)
            above = self._tree.above(node_id)
            if above is not None and any(amounts):
                if above not in owed:
                    heappush(waiting, -above)
                owed[above] = _plus(owed.get(above, self._none), amounts)


class Stirred:
    """Nodes in whose subtrees something changed, by their parents."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._lowest: set[NodeId] = set()
        self._children: defaultdict[NodeId, set[NodeId]] = defaultdict(set)

    def below(self, node_id: NodeId) -> None:
        """Something changed in the subtree of the node, and so in those of all above it."""
        self._lowest.add(node_id)

    def children(self, node_id: NodeId) -> set[NodeId]:
        """The node's children that were stirred since they were asked for last."""
        for each in and_above(self._tree, self._lowest):
            if (above := self._tree.above(each)) is not None:
                self._children[above].add(each)
        self._lowest.clear()
        return self._children.pop(node_id, set())


class Siblings:
    """The children of each node that something may be expanded below, ranked anew when they were stirred."""

    def __init__(self, tree: Tree, rank: Callable[[NodeId], float]) -> None:
        self._tree = tree
        self._rank = rank
        self._stirred = Stirred(tree)
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
    return tuple(one + other for one, other in zip(some, others, strict=True))
