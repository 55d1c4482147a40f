"""Linear search: always expand the newest node, or optionally its nearest ancestor when it cannot be expanded."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.support.options import require_at_least


@dataclass(frozen=True, slots=True)
class Linear:
    """Expand the newest node, one expansion at a time. A failed expansion is retried."""

    attempts: int = 3
    """How many consecutive expansions of one node may end without a new node, at least 1."""
    backtrack: bool = False
    """Whether to continue from the nearest ancestor if nothing is left to do at the newest node (depth-first
    search)."""

    def __post_init__(self) -> None:
        require_at_least(self, attempts=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the newest node while it has attempts left; with `backtrack`, else the nearest ancestor that has."""
        del rng
        if tree.in_flight:
            return None
        node_id: NodeId | None = len(tree) - 1
        while node_id is not None:
            if tree.expandable(node_id) and (left := self._left(tree, node_id)) > 0:
                return Choice(node_id, reasons=(Reason(node_id, {"score": node_id, "attempts_left": left}),))
            node_id = tree.parent_id(node_id) if self.backtrack else None
        return None

    def _left(self, tree: Tree, node_id: NodeId) -> int:
        """How many more expansions of the node may end without a new node."""
        fruitless = takewhile(lambda attempt: attempt.child is None or attempt.known, reversed(tree.attempts(node_id)))
        return self.attempts - sum(1 for _ in fruitless)
