"""Lines of work: one conversation continues from state to state until it ends; then a search picks the next start.

A test run is a turn inside a line: its state is measured and recorded as a node, and the same conversation continues
from there. So a line is a path of nodes, and a search selects the state at which the next line branches off.
"""

from __future__ import annotations

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View

RETRIES = 1
"""How often a failed turn is retried before the line is given up."""


class OpenLines(View):
    """A view: the states at which a line of work waits to be continued, and those at which lines have ended."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._waiting = dict[NodeId, None]()
        self.ended = dict[NodeId, None]()
        """The states at which lines have ended, in the order in which they ended."""

    @property
    def oldest(self) -> NodeId | None:
        """Return the state at which the oldest waiting line waits, or None."""
        return min(self._waiting, default=None)

    def waits(self, node_id: NodeId) -> bool:
        """Whether a line waits at the state."""
        return node_id in self._waiting

    def changed(self, node_id: NodeId) -> None:
        """Note whether a line waits at the state, or has ended there."""
        if node_id == self._tree.root.id:
            return
        tree, node = self._tree, self._tree[node_id]
        is_last = node.by_model and node.kind != "strategy" and not tree.pending_at(node_id)
        is_last = is_last and not any(attempt.child is not None for attempt in tree.attempts(node_id))
        aborted = node.evaluation.aborted
        ended = bool(node.line_end) or not tree.expandable(node_id)
        finished = ended or aborted or len(tree.failures(node_id)) > RETRIES
        for states, belongs in ((self._waiting, is_last and not finished), (self.ended, is_last and finished)):
            if belongs:
                states.setdefault(node_id)
            else:
                states.pop(node_id, None)


def continues(tree: Tree, node_id: NodeId) -> bool:
    """Whether the turns that led to the state continued the line of its parent."""
    node, parent = tree[node_id], tree.parent(node_id)
    if parent is None or parent.kind in ("strategy", "fuse") or parent.line_end:
        return False
    return node.by_model and parent.by_model and node.kind == parent.kind and tree.children(parent.id)[0].id == node_id


def continued(tree: Tree) -> Choice | None:
    """Continue the oldest waiting line; None if no line waits."""
    node_id = tree.view(OpenLines, OpenLines).oldest
    if node_id is None:
        return None
    reason = Reason(node_id, {"score": 1.0})
    kind = tree[node_id].kind
    return Choice(node_id, kind=kind, continues=True, reasons=(reason,))
