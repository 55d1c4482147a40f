"""State graph: the states that each state was made from, by an edit or with a reference to another.

Edit parents make a tree: each node except the root is below the older node in which its edit was made. References make
it a directed graph without cycles. networkx is slow to load, so its graph is made only on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from agent.run.tree.node import NodeId

if TYPE_CHECKING:
    import networkx as nx


EdgeKind = Literal["edit", "reference"]


class StateGraph:
    """Nodes that are numbered from 0, parents before their children."""

    def __init__(self) -> None:
        self._parents: list[NodeId | None] = []
        self._children: list[list[NodeId]] = []
        self._depths: list[int] = []
        self._from: list[dict[NodeId, EdgeKind]] = []
        self._into: list[dict[NodeId, EdgeKind]] = []

    def add(self, parents: Iterable[NodeId]) -> None:
        """Add the next node: the first parent is the state that its edit was made in, the others are references."""
        node_id = len(self._parents)
        edit_parent, *references = (*parents,) or (None,)
        self._parents.append(edit_parent)
        self._children.append([])
        self._depths.append(0)
        self._from.append({})
        self._into.append({})
        if edit_parent is not None:
            self._children[edit_parent].append(node_id)
            self._depths[node_id] = self._depths[edit_parent] + 1
            self._link(edit_parent, node_id, "edit")
        for other in references:
            assert other is not None
            self._link(other, node_id, "reference")

    def refer(self, start: NodeId, end: NodeId) -> None:
        """Add a reference edge, unless there is an edge already or it would close a cycle."""
        if start not in self._into[end] and not self._reaches(end, start):
            self._link(start, end, "reference")

    def parent(self, node_id: NodeId) -> NodeId | None:
        """The node that its edit was made in; None for the root."""
        return self._parents[node_id]

    def children(self, node_id: NodeId) -> list[NodeId]:
        """Return the nodes whose edit was made in this one, oldest first. The caller must not change the list."""
        return self._children[node_id]

    def depth(self, node_id: NodeId) -> int:
        """Edits between the root and the node."""
        return self._depths[node_id]

    def path(self, node_id: NodeId) -> list[NodeId]:
        """From the root to the node, along edit parents."""
        path = [node_id]
        while (parent := self._parents[path[-1]]) is not None:
            path.append(parent)
        return path[::-1]

    def ancestors(self, nodes: Iterable[NodeId]) -> set[NodeId]:
        """These nodes and all above them."""
        passed = set[NodeId]()
        for start in nodes:
            node_id: NodeId | None = start
            while node_id is not None and node_id not in passed:
                passed.add(node_id)
                node_id = self._parents[node_id]
        return passed

    def subtree(self, node_id: NodeId) -> list[NodeId]:
        """The node and all below it, parents before their children."""
        nodes = [node_id]
        for each in nodes:
            nodes.extend(self._children[each])
        return nodes

    def common_ancestor(self, one: NodeId, other: NodeId) -> NodeId:
        """Return the deepest node that both come from, or one of them if it is above the other."""
        while one != other:
            lower = one if self._depths[one] >= self._depths[other] else other
            parent = self._parents[lower]
            assert parent is not None, "two nodes of one tree have its root in common"
            one, other = parent, other if lower == one else one
        return one

    def edges(self) -> Iterator[tuple[NodeId, NodeId, EdgeKind]]:
        """All edges, by their start."""
        return ((start, end, kind) for start, ends in enumerate(self._from) for end, kind in ends.items())

    def edges_at(self, node_id: NodeId) -> Iterator[tuple[NodeId, NodeId, EdgeKind]]:
        """The edges to and from the node."""
        yield from ((start, node_id, kind) for start, kind in self._into[node_id].items())
        yield from ((node_id, end, kind) for end, kind in self._from[node_id].items())

    def sources(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """The nodes from which an edge leads to this one, in the order of recording."""
        return tuple(self._into[node_id])

    def networkx(self) -> nx.DiGraph[NodeId]:
        """Return a copy as a networkx graph, each edge with its `kind`."""
        import networkx as nx

        graph: nx.DiGraph[NodeId] = nx.DiGraph()
        graph.add_nodes_from(range(len(self._from)))
        graph.add_edges_from((start, end, {"kind": kind}) for start, end, kind in self.edges())
        return graph

    def _link(self, start: NodeId, end: NodeId, kind: EdgeKind) -> None:
        self._from[start][end] = self._into[end][start] = kind

    def _reaches(self, start: NodeId, end: NodeId) -> bool:
        """Whether `end` is `start` or one of its descendants."""
        seen, pending = set[NodeId](), [end]
        while pending:
            if (node_id := pending.pop()) == start:
                return True
            if node_id not in seen:
                seen.add(node_id)
                pending += self._into[node_id]
        return False
