"""Which rollouts of the current round are finished."""

from __future__ import annotations

from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View


class FinishedRollouts(View):
    """A view of the part of a tree that a round has added (`agent.run.run.Run.round_tree`): how many of its rollouts
    are finished.

    A rollout is finished when its last state is solved, was submitted, or cannot be expanded; when a critic accepts
    that state, unless a conversation continues from it; and when it reaches a state of an earlier round. For a policy
    that proposes single edits, nearly all of which change nothing, only solved states count (`solved_only`).
    """

    def __init__(self, tree: Tree, *, solved_only: bool = False) -> None:
        self._tree = tree
        self._solved_only = solved_only
        self._ends = set[NodeId]()
        self._merged: dict[NodeId, int] = {}

    @property
    def count(self) -> int:
        """Finished rollouts."""
        return len(self._ends) + sum(self._merged.values())

    @property
    def ends(self) -> frozenset[NodeId]:
        """The last states of the finished rollouts, except those that reached a state of an earlier round."""
        return frozenset(self._ends)

    def changed(self, node_id: NodeId) -> None:
        """Update the counts for the node."""
        elsewhere = sum(attempt.known and attempt.child is None for attempt in self._tree.attempts(node_id))
        if elsewhere and not self._solved_only:
            self._merged[node_id] = elsewhere
        if self._is_end(node_id):
            self._ends.add(node_id)
        else:
            self._ends.discard(node_id)

    def _is_end(self, node_id: NodeId) -> bool:
        tree = self._tree
        if node_id == tree.root.id or node_id in self._merged or tree.children(node_id) or tree.pending_at(node_id):
            return False
        if self._solved_only:
            return tree[node_id].evaluation.solved
        node = tree[node_id]
        return not tree.expandable(node_id) or (node.evaluation.accepted and not node.by_model)
