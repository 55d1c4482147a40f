"""Which node to expand next. Each algorithm is one pure file; `registry` lists them."""

from __future__ import annotations

from random import Random
from typing import Protocol

from agent.tree import NodeId, Tree

__all__ = ["Search"]


class Search(Protocol):
    """An algorithm. It owns no state and does no I/O: the tree holds all there is to know, `tree.pending` the work in
    flight. It is deterministic for a tree and a generator, and its constructor's keywords are its settings."""

    def select(self, tree: Tree, rng: Random) -> NodeId | None:
        """The node to expand (`tree.expandable` holds for it), or None when nothing should be expanded now."""
        ...
