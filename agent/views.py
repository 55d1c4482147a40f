"""Views: what searches derive from a tree, told of every change."""

from __future__ import annotations

from typing import Protocol

from agent.node import NodeId

__all__ = ["View"]


class View(Protocol):
    """What a search derives from a tree in order to choose fast: an index, a heap.

    Law: a view says what the tree says and nothing else; one that is made now equals one that was kept for long.
    """

    def changed(self, node_id: NodeId) -> None:
        """The node is new, or its own facts changed: its expansions, those in flight, whether it is expandable."""
        ...

    def changed_below(self, node_id: NodeId) -> None:
        """What is counted over subtrees changed for the node and all above it: visits, values, open nodes, work in
        flight, measurements. Told once, of the lowest node: a view that minds goes up by itself, when it is asked for
        something (`agent.search.below`), so that a deep chain is not gone up anew for every change."""
        ...
