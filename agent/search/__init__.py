"""Search algorithms: which node to expand next. Each algorithm is one pure module; `registry` lists them.

This package must not import `agent.models`, a sandbox or a measurer: an algorithm reads the tree and nothing else.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from agent.run.tree.choice import Choice
from agent.run.tree.tree import Tree

__all__ = ["Search"]


class Search(Protocol):
    """A search algorithm. It has no state and does no I/O: everything is in the tree, and `tree.pending_below` counts
    the expansions in flight. Its choice depends on the tree and the generator alone; its constructor's keywords are its
    settings. Indexes that make a choice fast are views, which the tree keeps up to date (`Tree.view`).
    """

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Return what to do next, or None if nothing should start now. `tree.expandable` is true for the chosen node,
        except for a `fuse`, which needs no proposal."""
        ...
