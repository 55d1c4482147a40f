"""Edges: which states came of which, by an edit or with a reference to another.

networkx is slow to load, so its graph is made only for those who ask for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from agent.run.tree.node import NodeId

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["EdgeKind", "Edges"]

EdgeKind = Literal["edit", "reference"]


class Edges:
    """Edges between nodes that are numbered from 0; they never make a cycle."""

    def __init__(self) -> None:
        self._from: list[dict[NodeId, EdgeKind]] = []
        self._into: list[dict[NodeId, EdgeKind]] = []

    def __iter__(self) -> Iterator[tuple[NodeId, NodeId, EdgeKind]]:
        return ((start, end, kind) for start, ends in enumerate(self._from) for end, kind in ends.items())

    def grow(self) -> None:
        """One more node."""
        self._from.append({})
        self._into.append({})

    def add(self, start: NodeId, end: NodeId, kind: EdgeKind) -> None:
        """An edge, in place of the one that is there."""
        self._from[start][end] = self._into[end][start] = kind

    def sources(self, node: NodeId) -> tuple[NodeId, ...]:
        """The nodes from which an edge leads to this one, in the order of recording."""
        return tuple(self._into[node])

    def at(self, node: NodeId) -> Iterator[tuple[NodeId, NodeId, EdgeKind]]:
        """The edges to and from the node."""
        yield from ((start, node, kind) for start, kind in self._into[node].items())
        yield from ((node, end, kind) for end, kind in self._from[node].items())

    def leads(self, start: NodeId, end: NodeId) -> bool:
        """Whether `end` is `start` or comes of it."""
        seen, pending = set[NodeId](), [end]
        while pending:
            if (node := pending.pop()) == start:
                return True
            if node not in seen:
                seen.add(node)
                pending += self._into[node]
        return False

    def graph(self) -> nx.DiGraph[NodeId]:
        """A copy, for networkx."""
        import networkx as nx

        graph: nx.DiGraph[NodeId] = nx.DiGraph()
        graph.add_nodes_from(range(len(self._from)))
        graph.add_edges_from((start, end, {"kind": kind}) for start, end, kind in self)
        return graph
