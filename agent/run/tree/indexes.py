"""Views: what searches derive from a tree, told of every change."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from agent.run.tree.node import NodeId

__all__ = ["View", "Views"]


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
        something (`agent.search.support.below`), so that a deep chain is not gone up anew for every change."""
        ...


_V = TypeVar("_V", bound=View)


class Views:
    """All views of one tree, by their keys."""

    def __init__(self) -> None:
        self._views: dict[Hashable, View] = {}

    def kept(self, key: Hashable, make: Callable[[], _V], nodes: int) -> _V:
        """The view of this key; one that is new is made, and told of all nodes that there are."""
        if key not in self._views:
            view = make()
            for node_id in range(nodes):
                view.changed(node_id)
                view.changed_below(node_id)
            self._views[key] = view
        return self._views[key]  # type: ignore[return-value]  # the key stands for the type

    def forget(self, key: Hashable) -> None:
        """Drop the view of this key, if there is one."""
        self._views.pop(key, None)

    def changed(self, node_id: NodeId) -> None:
        """Tell every view."""
        for view in self._views.values():
            view.changed(node_id)

    def changed_below(self, node_id: NodeId) -> None:
        """Tell every view."""
        for view in self._views.values():
            view.changed_below(node_id)
