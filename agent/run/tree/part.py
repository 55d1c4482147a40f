"""A part of a tree as a tree of its own, for a search that must see nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Act, Attempt, NodeId
from agent.run.tree.tree import Tree


@dataclass(frozen=True, slots=True)
class RoundStart:
    """The counts of a tree and of one of its nodes when a round began, with nothing in flight."""

    nodes: int = 0
    ended: int = 0
    attempts: int = 0
    failures: int = 0
    evaluations: int = 0
    """Repeated evaluations of the node, the first one not counted."""
    measured: int = 0
    """Measurements of the node that were started, the first one not counted."""

    @classmethod
    def now(cls, tree: Tree, node: NodeId) -> Self:
        """Return the counts as they are now."""
        return cls(
            nodes=len(tree),
            ended=tree.ended(node),
            attempts=len(tree.attempts(node)),
            failures=len(tree.failures(node)),
            evaluations=len(tree.evaluations(node)) - 1,
            measured=tree.begun(node, "measure"),
        )


class TreePart(Tree):
    """A node and all below it: the node is the root, at depth 0, and ids count up from 0 in the order of the whole
    tree's. All other questions have the same answer in both; edges to nodes outside the part are left out.

    `since` hides what was done at the node before that moment, and the children that it led to. A node that is added
    below a hidden child later appears, with all below it, as a child of the root, without an attempt.

    The part is a view of the whole tree (`agent.run.tree.tree.View`), changes only with it, and has views of its own.
    It keeps the nodes and what follows from them, and asks the whole tree about the work at them.
    """

    def __init__(self, whole: Tree, top: NodeId, since: RoundStart | None = None) -> None:
        super().__init__()
        self._whole = whole
        self._top = top
        self._since = since or RoundStart()
        self._inner: dict[NodeId, NodeId] = {}
        self._outer: list[NodeId] = []
        self._counted: list[int] = []
        self._before: list[NodeId] = [child.id for child in whole.children(top) if child.id < self._since.nodes]
        self._elsewhere: tuple[int, int] | None = None
        """Work in flight and open nodes below the hidden children that are not in the part; None: not counted yet."""
        self._adopted: list[NodeId] = []

    def changed(self, node_id: NodeId) -> None:
        """Take over a new node of the part, or a change to a node."""
        if node_id not in self._inner and self._is_part(node_id):
            self._take_over(node_id)
        if (inner := self._inner.get(node_id)) is not None:
            self._link(node_id)
            self.ended_expansions += self.ended(inner) - self._counted[inner]
            self._counted[inner] = self.ended(inner)
            self._tell_changed(inner)

    def changed_below(self, node_id: NodeId) -> None:
        """Notify the views of the part."""
        if (inner := self._inner.get(node_id)) is not None:
            self.in_flight = self.pending_below(0)
            self._tell_changed_below(inner)
        else:
            self._elsewhere = None

    def in_whole(self, choice: Choice) -> Choice:
        """Convert a choice in the part to one in the whole tree."""
        reasons = (
            replace(r, node=self._outer[r.node], rival=None if r.rival is None else self._outer[r.rival])
            for r in choice.reasons
        )
        other = None if choice.other is None else self._outer[choice.other]
        return replace(choice, node=self._outer[choice.node], other=other, reasons=tuple(reasons))

    def evaluations(self, node_id: NodeId) -> tuple[Evaluation, ...]:
        first, *again = self._whole.evaluations(self._outer[node_id])
        return (first, *again[self._of(node_id).evaluations :])

    def expansions(self, node_id: NodeId) -> int:
        return self._whole.expansions(self._outer[node_id]) - self._of(node_id).attempts

    def ended(self, node_id: NodeId) -> int:
        return self._whole.ended(self._outer[node_id]) - self._of(node_id).ended

    def pending_at(self, node_id: NodeId) -> int:
        return self._whole.pending_at(self._outer[node_id])

    def pending_below(self, node_id: NodeId) -> int:
        return self._whole.pending_below(self._outer[node_id]) - self._outside_part(node_id)[0]

    def begun(self, node_id: NodeId, act: Act = "expand", other: NodeId | None = None, policy_id: str = "") -> int:
        node = self._outer[node_id]
        begun = self._whole.begun(node, act, None if other is None else self._outer[other], policy_id)
        if act == "measure":
            return begun - self._of(node_id).measured
        before = self._whole.attempts(node)[: self._of(node_id).attempts] if act == "expand" else ()
        return begun - sum(attempt.policy_id == policy_id for attempt in before)

    def open_below(self, node_id: NodeId) -> int:
        return self._whole.open_below(self._outer[node_id]) - self._outside_part(node_id)[1]

    def attempts(self, node_id: NodeId) -> tuple[Attempt, ...]:
        attempts = self._whole.attempts(self._outer[node_id])[self._of(node_id).attempts :]
        return tuple(replace(a, child=None if a.child is None else self._inner.get(a.child)) for a in attempts)

    def failures(self, node_id: NodeId) -> tuple[str, ...]:
        return self._whole.failures(self._outer[node_id])[self._of(node_id).failures :]

    def expandable(self, node_id: NodeId) -> bool:
        return self._whole.expandable(self._outer[node_id])

    def exhausted_for(self, node_id: NodeId, policy_id: str) -> bool:
        return self._whole.exhausted_for(self._outer[node_id], policy_id)

    def pruned(self, node_id: NodeId) -> bool:
        return self._whole.pruned(self._outer[node_id])

    def _is_part(self, node_id: NodeId) -> bool:
        if node_id == self._top or self._whole.parent_id(node_id) in self._inner:
            return node_id >= self._since.nodes or node_id == self._top
        return 0 < self._since.nodes <= node_id and self._whole.parent_id(node_id) is not None

    def _of(self, node_id: NodeId) -> RoundStart:
        """Return what had been done at a node before the part began; only its root can have such a past."""
        return RoundStart() if node_id else self._since

    def _outside_part(self, node_id: NodeId) -> tuple[int, int]:
        """Work in flight and open nodes below the node that are in the whole tree and not in the part."""
        if node_id or not self._before:
            return 0, 0
        if self._elsewhere is None:
            counts = (self._whole.pending_below, self._whole.open_below)
            pending, open_ = (sum(map(of, self._before)) - sum(map(of, self._adopted)) for of in counts)
            self._elsewhere = pending, open_
        return self._elsewhere

    def _take_over(self, node_id: NodeId) -> None:
        node, inner = self._whole[node_id], len(self._outer)
        self._inner[node_id] = inner
        self._outer.append(node_id)
        self._counted.append(0)
        parents = tuple(self._inner[parent] for parent in node.parents if parent in self._inner)
        if inner and self._whole.parent_id(node_id) not in self._inner:
            self._adopted.append(node_id)
            parents = (0, *filter(None, parents))
        self.add(replace(node, id=inner, parents=parents, kind=node.kind if parents else ""))

    def _end_work(self, node_id: NodeId, act: Act, other: NodeId | None, policy_id: str) -> None:
        """Do nothing: the whole tree counts it."""

    def _link(self, node_id: NodeId) -> None:
        """Add the reference edges from and to the node."""
        for start, end, kind in self._whole.structure.edges_at(node_id):
            if kind == "reference" and start in self._inner and end in self._inner:
                self.structure.refer(self._inner[start], self._inner[end])
