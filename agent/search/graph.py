"""Monte Carlo graph search: tree search that merges two branches if neither improves alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.tree import NodeId, Tree
from agent.search.mcts import Mcts
from agent.search.support.options import require_at_least
from agent.search.support.repairs import Repairs

__all__ = ["Graph"]


@dataclass(frozen=True, slots=True)
class Graph:
    """Merge two branches if together they repair more than any single state; else select as `mcts` does.

    A branch is worth merging if no other state repairs a proper superset of the tests that its head repairs
    (`agent.search.support.repairs`), and if it is stagnant: it has at least `stagnation` nodes below its head, none
    worth more than the head, or nothing in it can be expanded any more. The pair that repairs most together comes
    first, the more valuable among equals. No pair is merged twice, whatever the result.

    References between branches, their fusion and stagnation as its trigger are those of Monte Carlo graph search
    (AutoMLGen, arXiv 2510.08511); which branches are merged, and what stagnation means, are our own choice.
    """

    stagnation: int = 0
    """At least 0; with 0, branches merge at once. A merge costs one measurement and no proposal, so waiting seldom
    pays."""
    candidates: int = 3
    """How many of the states that repair the same tests are tried, at least 1: the most valuable ones."""
    c: float = 0.1
    """Weight of exploration when nothing is merged (`agent.search.mcts.Mcts`)."""
    alpha: float = 0.25
    """Exponent of progressive widening when nothing is merged (`agent.search.mcts.Mcts`)."""

    def __post_init__(self) -> None:
        require_at_least(self, stagnation=0, candidates=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select a merge, else what `mcts` selects."""
        return self.merge(tree) or Mcts(c=self.c, alpha=self.alpha).select(tree, rng)

    def merge(self, tree: Tree) -> Choice | None:
        """The merge to make now, or None. Its node may be closed."""
        merges = sorted(self._merges(tree))
        if not merges:
            return None
        first, *others = merges
        rival, rival_terms = (others[0].ours, others[0].terms) if others else (None, None)
        return Choice(
            first.ours,
            "fuse",
            first.theirs,
            reasons=(Reason(first.ours, first.terms, len(merges), rival, rival_terms),),
        )

    def _merges(self, tree: Tree) -> Iterator[_Merge]:
        """The merges that are possible now and were not begun yet."""
        repairs = tree.view("repairs", Repairs)
        heads = {tests: self._heads(tree, repairs.nodes(tests)) for tests in repairs.most}
        for one, another in combinations(repairs.most, 2):
            for pair in product(heads[one], heads[another]):
                ours, theirs = sorted(pair, key=lambda n: (-tree[n].value, n))
                tried = tree.begun(ours, "fuse", theirs) or tree.begun(theirs, "fuse", ours)
                if not tried and not _related(tree, ours, theirs):
                    yield _Merge(-len(one | another), -tree[ours].value - tree[theirs].value, ours, theirs)

    def _heads(self, tree: Tree, nodes: Sequence[NodeId]) -> list[NodeId]:
        best = islice((n for n in nodes if tree.value_max(n) <= tree[n].value), self.candidates)
        return [n for n in best if tree.visits(n) > self.stagnation or not tree.open_below(n)]


@dataclass(frozen=True, slots=True, order=True)
class _Merge:
    """A pair of branches, in the order in which they are merged."""

    minus_tests: int
    """Minus the number of tests that they repair together."""
    minus_value: float
    """Minus the sum of their values."""
    ours: NodeId
    theirs: NodeId

    @property
    def terms(self) -> dict[str, float]:
        """The terms of the reason that the journal keeps."""
        return {"score": -self.minus_tests, "value": -self.minus_value, "with": self.theirs}


def _related(tree: Tree, one: NodeId, another: NodeId) -> bool:
    """Whether one is an ancestor of the other, so that there is nothing to merge."""
    return min(one, another) in (node.id for node in tree.path(max(one, another)))
