"""One line of play: always go on from where the last expansion led."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agent.search import Choice
from agent.tree import Tree

__all__ = ["Linear"]


@dataclass(frozen=True, slots=True)
class Linear:
    """Expand the newest node, once. An expansion that failed is tried again; nothing runs beside it."""

    attempts: int = 3
    """Expansions of one node that may end without a new node."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The newest node, while its path may go on."""
        del rng
        last = len(tree) - 1
        if tree.in_flight or not tree.expandable(last) or tree.expansions(last) >= self.attempts:
            return None
        return Choice(last)
