"""Aggregates over subtrees, such as visit counts and value sums. Changes are backed up when an aggregate is read."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from threading import RLock
from typing import Generic, TypeVar

from agent.run.tree.graph import StateGraph
from agent.run.tree.node import NodeId

_C = TypeVar("_C")


class SubtreeAggregate(Generic[_C]):
    """For each node, the combination of everything that was added in its subtree. Thread-safe, although reading changes
    it.

    `combine` has to be commutative and associative, with the neutral element `identity`. Additions wait until a total
    is read, and are then backed up together: each node above them is passed once.

    Invariant: a signal between any two lines loses nothing and counts nothing twice. The new totals are computed first,
    as totals and not as differences, kept, and then applied, which may be repeated any number of times.
    """

    def __init__(self, graph: StateGraph, identity: _C, combine: Callable[[_C, _C], _C]) -> None:
        self._graph = graph
        self._identity = identity
        self._combine = combine
        self._totals: dict[NodeId, _C] = {}
        self._added: dict[NodeId, _C] = {}
        """Additions that are not in the totals yet."""
        self._ready: dict[NodeId, _C] | None = None
        """New totals that hold all additions and are not applied yet."""
        self._lock = RLock()

    def add(self, node_id: NodeId, change: _C) -> None:
        """Add to the node, and so to the totals of all its ancestors."""
        with self._lock:
            self._apply()
            before = self._added.get(node_id)
            self._added[node_id] = change if before is None else self._combine(before, change)

    def __getitem__(self, node_id: NodeId) -> _C:
        if self._added or self._ready is not None:
            with self._lock:
                self._apply()
                if self._added:
                    self._ready = self._new_totals()
                    self._apply()
        return self._totals.get(node_id, self._identity)

    def _apply(self) -> None:
        if self._ready is not None:
            self._totals.update(self._ready)
            self._added = {}
            self._ready = None

    def _new_totals(self) -> dict[NodeId, _C]:
        """The totals that the additions change. The highest id comes first, and no node's id is below its parent's."""
        changes, totals = dict(self._added), dict[NodeId, _C]()
        waiting = [-node_id for node_id in changes]
        heapify(waiting)
        while waiting:
            node_id: NodeId | None = -heappop(waiting)
            assert node_id is not None
            change = changes.pop(node_id)
            if change == self._identity:
                continue
            until = -waiting[0] if waiting else -1
            while node_id is not None and node_id > until:
                totals[node_id] = self._combine(self._totals.get(node_id, self._identity), change)
                node_id = self._graph.parent(node_id)
            if node_id is None:
                continue
            if node_id in changes:
                changes[node_id] = self._combine(changes[node_id], change)
            else:
                changes[node_id] = change
                heappush(waiting, -node_id)
        return totals


UNIT = 1 << 80
"""The whole number that stands for the value 1. Values are summed as whole numbers, so that a sum does not depend on
the order of its terms. A value of 2 ** -27 or more is a whole number of units; a smaller one is rounded down."""


def exact(value: float) -> int:
    """A value in [0, 1] in units."""
    return int(value * UNIT)


_Counts = tuple[int, int, float, int, int]
"""Nodes, the sum of their values in units, the highest value, work in flight, and open nodes."""
_NOTHING: _Counts = (0, 0, 0.0, 0, 0)


class SubtreeCounts:
    """The counts of a tree over each node and all below it. Thread-safe."""

    def __init__(self, graph: StateGraph) -> None:
        self._counts = SubtreeAggregate(graph, _NOTHING, _combined)

    def add(self, node_id: NodeId, value: float, is_open: bool) -> None:
        """Count a new node."""
        self._counts.add(node_id, (1, exact(value), value, 0, int(is_open)))

    def add_pending(self, node_id: NodeId, change: int) -> None:
        """Change the amount of work in flight at the node by `change`."""
        self._counts.add(node_id, (0, 0, 0.0, change, 0))

    def close(self, node_id: NodeId) -> None:
        """Stop counting an open node as open."""
        self._counts.add(node_id, (0, 0, 0.0, 0, -1))

    def visits(self, node_id: NodeId) -> int:
        """Nodes in the subtree."""
        return self._counts[node_id][0]

    def value_sum(self, node_id: NodeId) -> float:
        """The sum of all values, rounded once."""
        return self._counts[node_id][1] / UNIT

    def value_max(self, node_id: NodeId) -> float:
        """The highest value."""
        return self._counts[node_id][2]

    def pending(self, node_id: NodeId) -> int:
        """Work in flight."""
        return self._counts[node_id][3]

    def open(self, node_id: NodeId) -> int:
        """Open nodes."""
        return self._counts[node_id][4]


def _combined(one: _Counts, other: _Counts) -> _Counts:
    highest = one[2] if one[2] > other[2] else other[2]
    return one[0] + other[0], one[1] + other[1], highest, one[3] + other[3], one[4] + other[4]
