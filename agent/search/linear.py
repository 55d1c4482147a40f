"""One line of play: always go on from where the last expansion led, or from the nearest state above where that ends."""

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
    backtrack: bool = False
    """Where nothing is left to do at the newest node, go on from the nearest above it: depth first."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts={self.attempts} is too small: give at least 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The newest node, while its path may go on; then those above it, the nearest first."""
        del rng
        if tree.in_flight:
            return None
        last = len(tree) - 1
        if tree.expandable(last) and (left := self.attempts - tree.expansions(last)) > 0:
            return Choice(last, reasons=(Reason(last, {"score": last, "attempts_left": left}),))
        above = tree.path(last)[-2::-1] if self.backtrack else ()
        open_ = next((node.id for node in above if tree.expandable(node.id)), None)
        return None if open_ is None else Choice(open_, reasons=(Reason(open_, {"score": open_}),))
