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
FIRST = 20
"""Expansions before a share of them says anything."""
TRIES = 40
"""What the base is given where proposals are blind."""
RARE = 0.1
"""The share of nodes that are better than their parents where proposals are blind, the first such node aside."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Merge states that complete each other (`graph`). Else ask these in turn, until one has something to choose.

    1. `best_of_n`, to begin anew, where the best branch has *ended* and others *promise*: no better node is among the
       last `patience`, at least half of the best node's children are worth exactly what it is, and about 60 % of the
       base's children are better than the base.
    2. `astar` where at least a fifth of the expansions led nowhere new: proposals repeat.
    3. `best_first`, which waits with states that are no better, where proposals are *blind*: at least half of all nodes
       are worth exactly what their parents are, and few are better. The policy's favourites did not help, and below a
       state that is no better it would propose them again; what it proposes later at the best state is worth more, as
       long as that leads to new states. It is given as many tries as it took to find it, the base 40.
    4. `swe_search`, which goes on from the best.
    5. `best_first`.

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
        if blind(tree):
            yield BestFirst(), "best_first: most proposals change nothing that is measured, and the best state has more"
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


def blind(tree: Tree) -> bool:
    """Whether few expansions change what is measured for the better, and the best state is worth some more tries."""
    born, best = tree.view("born", _Born), tree.best().id
    nodes, alike, better = len(tree) - 1, born.alike_in_all, born.better_in_all
    if nodes == 0 or alike < HALF * nodes or better - 1 > RARE * nodes:
        return False
    if not tree.expandable(best) or tree.expansions(best) >= tries(tree, best):
        return False
    return not any(attempt.known for attempt in tree.attempts(best))


def tries(tree: Tree, node_id: NodeId) -> int:
    """Expansions that a state deserves: as many as its parent had when it was found."""
    above = tree.above(node_id)
    if above is None:
        return TRIES
    found = [attempt.child for attempt in tree.attempts(above)]
    return found.index(node_id) + 1 if node_id in found else 0


class _Born:
    """A view: how the children of each node compare with it, by their values."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._seen = 0
        self.all: Counter[NodeId] = Counter()
        self.alike: Counter[NodeId] = Counter()
        self.better: Counter[NodeId] = Counter()
        self.alike_in_all = self.better_in_all = 0

    def changed(self, node_id: NodeId) -> None:
        """Count a node that is new."""
        if node_id == self._seen:
            self._seen += 1
            if (parent := self._tree.parent(node_id)) is not None:
                value = self._tree[node_id].value
                self.all[parent.id] += 1
                self.alike[parent.id] += value == parent.value
                self.better[parent.id] += value > parent.value
                self.alike_in_all += value == parent.value
                self.better_in_all += value > parent.value

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: only children count here."""
