"""Which node to expand next. Each algorithm is one pure file; `registry` lists them.

It must not import `agent.models`, a sandbox, or what measures states: an algorithm reads the tree and nothing else.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from agent.run.tree.choice import Choice
from agent.run.tree.tree import Tree

__all__ = ["Search"]


class Search(Protocol):
    """An algorithm. It owns no state and does no I/O: the tree holds all there is to know, `tree.pending_below` the
    work in flight. It is deterministic for a tree and a generator, and its constructor's keywords are its settings.

    What it needs to choose fast it derives from the tree, as a view that the tree keeps up to date (`Tree.view`).
    """

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """What to do next, or None when nothing should be begun now. `tree.expandable` holds for its node, but for a
        `fuse`, where nothing is proposed."""
        ...
