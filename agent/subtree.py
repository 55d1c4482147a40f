"""A part of a tree as a tree of its own, for a search that is to look at nothing else."""

from __future__ import annotations

from dataclasses import replace

from agent.search import Choice
from agent.tree import Act, Attempt, NodeId, Tree
from agent.value import Evaluation

__all__ = ["Subtree"]


class Subtree(Tree):
    """A node and all below it: the node is the root, at depth 0, and ids count up from 0 in the order of the whole
    tree's. All else has the same answer in both; what leads elsewhere has no end here.

    It is a view of the whole tree (`agent.tree.View`), by which alone it changes, and has views of its own. The nodes
    and what follows from them it keeps; of the work at them it asks the whole tree.
    """

    def __init__(self, whole: Tree, top: NodeId) -> None:
        super().__init__()
        self._whole = whole
        self._top = top
        self._inner: dict[NodeId, NodeId] = {}
        self._outer: list[NodeId] = []
        self._counted: list[int] = []

    def changed(self, node_id: NodeId) -> None:
        """Take over a node of the part, or what happened to it."""
        parent = self._whole.parent(node_id)
        if node_id not in self._inner and (node_id == self._top or (parent and parent.id in self._inner)):
            self._take_over(node_id)
        if (inner := self._inner.get(node_id)) is not None:
            self._link(node_id)
            self.ended_expansions += self._whole.ended(node_id) - self._counted[inner]
            self._counted[inner] = self._whole.ended(node_id)
            self._tell(inner)

    def changed_below(self, node_id: NodeId) -> None:
        """Tell the views of the part."""
        self.in_flight = self._whole.pending_below(self._top)
        if (inner := self._inner.get(node_id)) is not None:
            for view in self._views.values():
                view.changed_below(inner)

    def in_whole(self, choice: Choice) -> Choice:
        """A choice in the part as one in the whole tree."""
        reasons = (
            replace(r, node=self._outer[r.node], rival=None if r.rival is None else self._outer[r.rival])
            for r in choice.reasons
        )
        other = None if choice.other is None else self._outer[choice.other]
        return replace(choice, node=self._outer[choice.node], other=other, reasons=tuple(reasons))

    def evaluations(self, node_id: NodeId) -> tuple[Evaluation, ...]:
        return self._whole.evaluations(self._outer[node_id])

    def expansions(self, node_id: NodeId) -> int:
        return self._whole.expansions(self._outer[node_id])

    def ended(self, node_id: NodeId) -> int:
        return self._whole.ended(self._outer[node_id])

    def pending(self, node_id: NodeId) -> int:
        return self._whole.pending(self._outer[node_id])

    def pending_below(self, node_id: NodeId) -> int:
        return self._whole.pending_below(self._outer[node_id])

    def begun(self, node_id: NodeId, act: Act = "expand", other: NodeId | None = None, policy_id: str = "") -> int:
        return self._whole.begun(self._outer[node_id], act, None if other is None else self._outer[other], policy_id)

    def open_below(self, node_id: NodeId) -> int:
        return self._whole.open_below(self._outer[node_id])

    def attempts(self, node_id: NodeId) -> tuple[Attempt, ...]:
        attempts = self._whole.attempts(self._outer[node_id])
        return tuple(replace(a, child=None if a.child is None else self._inner.get(a.child)) for a in attempts)

    def failures(self, node_id: NodeId) -> tuple[str, ...]:
        return self._whole.failures(self._outer[node_id])

    def expandable(self, node_id: NodeId) -> bool:
        return self._whole.expandable(self._outer[node_id])

    def left(self, node_id: NodeId, policy_id: str) -> bool:
        return self._whole.left(self._outer[node_id], policy_id)

    def pruned(self, node_id: NodeId) -> bool:
        return self._whole.pruned(self._outer[node_id])

    def _take_over(self, node_id: NodeId) -> None:
        node, inner = self._whole[node_id], len(self._outer)
        self._inner[node_id] = inner
        self._outer.append(node_id)
        self._counted.append(0)
        parents = tuple(self._inner[parent] for parent in node.parents if parent in self._inner)
        self.add(replace(node, id=inner, parents=parents, kind=node.kind if parents else ""))

    def _end_work(self, node_id: NodeId, act: Act, other: NodeId | None, policy_id: str) -> None:
        """The whole tree counts it."""

    def _link(self, node_id: NodeId) -> None:
        """Reference edges from and to the node."""
        graph = self._whole.graph
        for start, end, kind in (*graph.in_edges(node_id, data="kind"), *graph.out_edges(node_id, data="kind")):
            if kind == "reference" and start in self._inner and end in self._inner:
                self.graph.add_edge(self._inner[start], self._inner[end], kind=kind)
