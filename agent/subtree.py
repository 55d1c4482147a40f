"""A part of a tree as a tree of its own, for a search that is to look at nothing else."""

from __future__ import annotations

from dataclasses import replace

from agent.search import Choice
from agent.tree import Attempt, NodeId, Tree

__all__ = ["Subtree"]


class Subtree:
    """A node and all below it. A view of the whole tree (`agent.tree.View`), which keeps it up to date.

    In `tree` the node is the root, at depth 0, and ids count up from 0 in the order of the whole tree's; all else that
    can be asked of a node has the same answer in both. Edges from and to nodes elsewhere are left out.
    """

    def __init__(self, whole: Tree, top: NodeId) -> None:
        self.tree = Tree()
        self._whole = whole
        self._top = top
        self._inner: dict[NodeId, NodeId] = {}
        self._outer: list[NodeId] = []

    def changed(self, node_id: NodeId) -> None:
        """Take over a node of the part, or what happened to it."""
        parent = self._whole.parent(node_id)
        if node_id not in self._inner and (node_id == self._top or (parent and parent.id in self._inner)):
            self._add(node_id)
        if node_id in self._inner:
            self._link(node_id)
            self._update(node_id)

    def changed_below(self, node_id: NodeId) -> None:
        """What is counted over subtrees, the part counts itself."""

    def in_whole(self, choice: Choice) -> Choice:
        """A choice in the part as one in the whole tree."""
        reasons = (
            replace(r, node=self._outer[r.node], rival=None if r.rival is None else self._outer[r.rival])
            for r in choice.reasons
        )
        return replace(
            choice,
            node=self._outer[choice.node],
            other=None if choice.other is None else self._outer[choice.other],
            reasons=tuple(reasons),
        )

    def _add(self, node_id: NodeId) -> None:
        node = self._whole[node_id]
        parents = tuple(self._inner[parent] for parent in node.parents if parent in self._inner)
        self._inner[node_id] = len(self._outer)
        self._outer.append(node_id)
        self.tree.add(replace(node, id=self._inner[node_id], parents=parents))

    def _link(self, node_id: NodeId) -> None:
        """Reference edges from and to the node."""
        graph = self._whole.graph
        for start, end, kind in (*graph.in_edges(node_id, data="kind"), *graph.out_edges(node_id, data="kind")):
            if kind == "reference" and start in self._inner and end in self._inner:
                self.tree.graph.add_edge(self._inner[start], self._inner[end], kind=kind)

    def _update(self, node_id: NodeId) -> None:
        """Failures, duplicates, work in flight, and whether the node may be expanded."""
        whole, part, inner = self._whole, self.tree, self._inner[node_id]
        for failed in _failed(whole, node_id)[len(_failed(part, inner)) :]:
            part.fail(inner, failed.reason, policy_id=failed.policy_id)
        for known in _known(whole, node_id)[len(_known(part, inner)) :]:
            part.merge(inner, inner, known.label, policy_id=known.policy_id)
        for evaluation in whole.evaluations(node_id)[len(part.evaluations(inner)) :]:
            part.measure_again(inner, evaluation)
        for _ in range(whole.pending(node_id) - part.pending(inner)):
            part.begin(inner)
        for _ in range(part.pending(inner) - whole.pending(node_id)):
            part.end(inner)
        if not whole.expandable(node_id):
            part.close(inner)


def _failed(tree: Tree, node_id: NodeId) -> list[Attempt]:
    """Expansions of a node that ended without a state."""
    return [attempt for attempt in tree.attempts(node_id) if attempt.child is None]


def _known(tree: Tree, node_id: NodeId) -> list[Attempt]:
    """Expansions of a node that led to a known state."""
    return [attempt for attempt in tree.attempts(node_id) if attempt.known]
