"""Ancestry: which node an edit was made in, and so what is above and below each."""

from __future__ import annotations

from collections.abc import Iterator

from agent.run.tree.node import NodeId

__all__ = ["Ancestry"]

SPAN = 64
"""Edits between a station and the next one above it, at least 1. Few trees have a second station."""


class Ancestry:
    """Nodes that are numbered from 0, each but the root below the one that its edit was made in, which is older.

    Every SPAN-th node of a way down is a *station*, the root is the first: who goes from station to station is soon at
    the root of the deepest tree.
    """

    def __init__(self) -> None:
        self._above: list[NodeId | None] = []
        self._children: list[list[NodeId]] = []
        self._depths: list[int] = []
        self._stations: list[NodeId] = []

    def add(self, above: NodeId | None) -> None:
        """The next node."""
        depth = 0 if above is None else self._depths[above] + 1
        if above is not None:
            self._children[above].append(len(self._above))
        self._stations.append(len(self._above) if above is None or depth % SPAN == 0 else self._stations[above])
        self._depths.append(depth)
        self._above.append(above)
        self._children.append([])

    def above(self, node_id: NodeId) -> NodeId | None:
        """The node that its edit was made in; None for the root."""
        return self._above[node_id]

    def station(self, node_id: NodeId) -> NodeId:
        """The node itself where it is a station, else the nearest one above it."""
        return self._stations[node_id]

    def next_station(self, station: NodeId) -> NodeId | None:
        """The station above this one; None for the root."""
        above = self._above[station]
        return None if above is None else self._stations[above]

    def between(self, station: NodeId) -> Iterator[NodeId]:
        """The nodes between a station and the next one above it, the lowest first."""
        above, end = self._above[station], self.next_station(station)
        while above is not None and above != end:
            yield above
            above = self._above[above]

    def children(self, node_id: NodeId) -> list[NodeId]:
        """Oldest first. The list is not to be changed."""
        return self._children[node_id]

    def depth(self, node_id: NodeId) -> int:
        """Edits between the root and the node."""
        return self._depths[node_id]

    def path(self, node_id: NodeId) -> list[NodeId]:
        """From the root to the node."""
        found = [node_id]
        while (above := self._above[found[-1]]) is not None:
            found.append(above)
        return found[::-1]

    def at_most(self, depth: int, node_id: NodeId) -> NodeId:
        """The node itself, or the one above it that so many edits made where it has more."""
        while self._depths[node_id] > depth:
            station = self._stations[node_id]
            above = self._above[node_id]
            assert above is not None, "only the root has nothing above it, and no edits"
            node_id = station if node_id != station and self._depths[station] >= depth else above
        return node_id

    def subtree(self, node_id: NodeId) -> list[NodeId]:
        """The node and all below it, each after the one above it."""
        found = [node_id]
        for each in found:
            found.extend(self._children[each])
        return found

    def common(self, one: NodeId, other: NodeId) -> NodeId:
        """The deepest node that both come from; one of them where it is above the other."""
        while one != other:
            lower = one if self._depths[one] >= self._depths[other] else other
            above = self._above[lower]
            assert above is not None, "two nodes of one tree have its root in common"
            one, other = above, other if lower == one else one
        return one
