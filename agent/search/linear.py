"""One line of play: always go on from where the last expansion led."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agent.search import Choice, Reason
from agent.tree import Tree

__all__ = ["Linear"]


@dataclass(frozen=True, slots=True)
class Linear:
    """Expand the newest node, once. An expansion that failed is tried again; nothing runs beside it."""

    attempts: int = 3
    """Expansions of one node that may end without a new node, at least 1."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts={self.attempts} is too small: give at least 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The newest node, while its path may go on."""
        del rng
        last = len(tree) - 1
        left = self.attempts - tree.expansions(last)
        if tree.in_flight or not tree.expandable(last) or left <= 0:
            return None
        return Choice(last, reasons=(Reason(last, {"score": last, "attempts_left": left}),))
