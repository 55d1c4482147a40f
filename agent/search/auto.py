"""Chooses among the other algorithms by what the tree shows, anew at each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from agent.search import Choice, Search
from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.graph import Graph
from agent.search.swe_search import SweSearch
from agent.tree import Tree

__all__ = ["Auto"]


@dataclass(frozen=True, slots=True)
class Auto:
    """Merge states that complete each other (`graph`). Else go on from the best (`swe_search`), and begin anew
    (`best_of_n`) while that is stalled: since the best node at least as many nodes were recorded as up to it, and
    `patience` more. A policy that proposes single edits is searched `best_first`. Where an algorithm has nothing to
    choose, the next is asked; `Choice.because` says which one chose, and why.

    The rule is our own, found on simulated landscapes (`benchmarks.perf.search_sim`): going on from the best is ahead
    but where a branch that begins best ends badly, and merging helps wherever it can be done.
    """

    single_edits: bool = False
    """The policy proposes single edits, of which there are many and of which nearly all help nothing."""
    patience: int = 8
    """At least 1."""

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"patience={self.patience} is too small: give at least 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """What the first algorithm chooses that chooses something."""
        merge = Graph(stagnation=0).merge(tree)
        if merge is not None:
            return replace(merge, because="graph: together two states repair more than any does")
        for search, because in self.order(tree):
            choice = search.select(tree, rng)
            if choice is not None:
                return replace(choice, because=because)
        return None

    def order(self, tree: Tree) -> Iterator[tuple[Search, str]]:
        """The algorithms to ask now, first to last, and why each."""
        if self.single_edits:
            yield BestFirst(), "best_first: the policy proposes single edits, and most help nothing"
            return
        best = tree.best().id
        stalled = len(tree) - 1 - best >= best + self.patience
        if stalled:
            yield BestOfN(), f"best_of_n: nothing better than node {best} was found for long"
        yield SweSearch(), "swe_search: the best states are gone on with"
        if not stalled:
            yield BestOfN(), "best_of_n: from the best states nothing is left to do"
        yield BestFirst(), "best_first: the others have nothing left to do"
