"""Lineage: which node an edit was made in, and so what is above and below each."""

from __future__ import annotations

from agent.node import NodeId

__all__ = ["Lineage"]


class Lineage:
    """Nodes that are numbered from 0, each but the root below the one that its edit was made in, which is older."""

    def __init__(self) -> None:
        self._above: list[NodeId | None] = []
        self._children: list[list[NodeId]] = []
        self._depths: list[int] = []

    def add(self, above: NodeId | None) -> None:
        """The next node."""
        if above is not None:
            self._children[above].append(len(self._above))
        self._depths.append(0 if above is None else self._depths[above] + 1)
        self._above.append(above)
        self._children.append([])

    def above(self, node_id: NodeId) -> NodeId | None:
        """The node that its edit was made in; None for the root."""
        return self._above[node_id]

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
