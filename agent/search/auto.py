"""Chooses among the other algorithms by what the tree shows, anew at each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from agent.search import Choice, Search
from agent.search.astar import AStar
from agent.search.best_first import TIRED, BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.graph import Graph
from agent.search.swe_search import SweSearch
from agent.tree import NodeId, Tree

__all__ = ["Auto"]

MANY = 10**6
"""Rollouts from the base state: as many as are wanted."""
HALF, MOST, FEW = 0.5, 0.6, 0.2
"""Shares."""
FIRST = 10
"""Expansions before a share of them says anything."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Merge states that complete each other (`graph`). Else ask these in turn, until one has something to choose.

    1. `best_of_n`, to begin anew, where the best branch has *ended* and others *promise*: no better node is among the
       last `patience`, at least half of the best node's children are worth exactly what it is, and about 60 % of the
       base's children are better than the base.
    2. `astar` where at least a fifth of the expansions led nowhere new: proposals repeat.
    3. `swe_search`, which goes on from the best.
    4. `best_first`.

    A policy that proposes single edits is searched `best_first`. `Choice.because` says which one chose, and why. The
    rule is our own, found on simulated landscapes (`benchmarks.perf.search_sim`, other seeds than those reported).
    """

    single_edits: bool = False
    """The policy proposes single edits, of which there are many and of which nearly all help nothing."""
    patience: int = 10
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
            yield BestFirst(fatigue=TIRED), "best_first: the policy proposes single edits, and most help nothing"
            return
        if self.ended(tree) and promising(tree):
            best = tree.best().id
            yield (
                BestOfN(n=MANY),
                f"best_of_n: nothing changes below node {best} any more, and other beginnings promise",
            )
        if repeating(tree):
            yield AStar(), "astar: many proposals lead nowhere new"
        yield SweSearch(), "swe_search: the best states are gone on with"
        yield BestFirst(), "best_first: the others have nothing left to do"

    def ended(self, tree: Tree) -> bool:
        """Whether the best branch seems to have come to its end."""
        best, born = tree.best().id, tree.view("born", _Born)
        return len(tree) - 1 - best >= self.patience and 0 < born.all[best] <= born.alike[best] / HALF


def promising(tree: Tree) -> bool:
    """Whether the base is easily bettered: most of its expansions did so, where one more would have and one not."""
    born, root = tree.view("born", _Born), tree.root.id
    return (1 + born.better[root]) / (2 + tree.expansions(root)) >= MOST


def repeating(tree: Tree) -> bool:
    """Whether many expansions led to states that were known, or failed."""
    ended = tree.ended_expansions
    return ended >= FIRST and ended - (len(tree) - 1) >= FEW * ended


class _Born:
    """A view: how the children of each node compare with it, by their values."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._seen = 0
        self.all: Counter[NodeId] = Counter()
        self.alike: Counter[NodeId] = Counter()
        self.better: Counter[NodeId] = Counter()

    def changed(self, node_id: NodeId) -> None:
        """Count a node that is new."""
        if node_id == self._seen:
            self._seen += 1
            if (parent := self._tree.parent(node_id)) is not None:
                value = self._tree[node_id].value
                self.all[parent.id] += 1
                self.alike[parent.id] += value == parent.value
                self.better[parent.id] += value > parent.value

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: only children count here."""
