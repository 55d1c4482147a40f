"""Which rollouts of a wave have come to their end."""

from __future__ import annotations

from agent.run.tree.tree import NodeId, Tree

__all__ = ["FinishedRollouts"]


class FinishedRollouts:
    """A view of the part of a tree that a wave has made (`agent.run.run.Run.wave`): how many of its rollouts are
    finished.

    A rollout is finished where it ends in a state that is solved, was submitted, or at which nothing is left to do;
    where no conversation continues, also in one that a critic accepts; and where it comes to a state that an earlier
    wave had reached. Of a policy that proposes single edits (`solved_only`), of which nearly all help nothing, only
    what solves the task is worth the name.
    """

    def __init__(self, wave: Tree, *, solved_only: bool = False) -> None:
        self._wave = wave
        self._solved_only = solved_only
        self._ends = set[NodeId]()
        self._merged: dict[NodeId, int] = {}

    @property
    def count(self) -> int:
        """FinishedRollouts ones."""
        return len(self._ends) + sum(self._merged.values())

    def changed(self, node_id: NodeId) -> None:
        """Look at what ends there."""
        elsewhere = sum(attempt.known and attempt.child is None for attempt in self._wave.attempts(node_id))
        if elsewhere and not self._solved_only:
            self._merged[node_id] = elsewhere
        if self._is_end(node_id):
            self._ends.add(node_id)
        else:
            self._ends.discard(node_id)

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: an end has nothing below it."""

    def _is_end(self, node_id: NodeId) -> bool:
        wave = self._wave
        if node_id == wave.root.id or node_id in self._merged or wave.children(node_id) or wave.pending(node_id):
            return False
        if self._solved_only:
            return wave[node_id].evaluation.solved
        node = wave[node_id]
        return not wave.expandable(node_id) or (node.evaluation.accepted and not node.by_model)
