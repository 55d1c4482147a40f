"""Subtrees: what a tree counts of each node and all below it, brought up to date when it is asked for."""

from __future__ import annotations

from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.ancestry import Ancestry
from agent.run.tree.node import NodeId

__all__ = ["Subtrees"]

UNIT = 1 << 80
"""One, where values are summed as whole numbers: a sum is the same in whatever order it is made. A value of 2 ** -27 or
more is a whole number of units, a smaller one is cut off."""

_Counts = tuple[int, int, float, int, int]
"""Nodes, the sum of their values in units, the highest value, work in flight, and open nodes."""
_NOTHING: _Counts = (0, 0, 0.0, 0, 0)


class Subtrees:
    """The counts of nodes that are numbered from 0, parents before their children. Thread-safe."""

    def __init__(self, lineage: Ancestry) -> None:
        self._counts = SubtreeAggregate(lineage, _NOTHING, _both)

    def add(self, node_id: NodeId, value: float, is_open: bool) -> None:
        """A new node."""
        self._counts.note(node_id, (1, int(value * UNIT), value, 0, int(is_open)))

    def fly(self, node_id: NodeId, change: int) -> None:
        """So much more work is in flight at the node."""
        self._counts.note(node_id, (0, 0, 0.0, change, 0))

    def close(self, node_id: NodeId) -> None:
        """An open node is open no longer."""
        self._counts.note(node_id, (0, 0, 0.0, 0, -1))

    def visits(self, node_id: NodeId) -> int:
        """Nodes."""
        return self._counts[node_id][0]

    def value_sum(self, node_id: NodeId) -> float:
        """Of all values, rounded once."""
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


def _both(one: _Counts, other: _Counts) -> _Counts:
    highest = one[2] if one[2] > other[2] else other[2]
    return one[0] + other[0], one[1] + other[1], highest, one[3] + other[3], one[4] + other[4]
