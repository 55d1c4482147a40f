"""The default: single edits best first; with a model one line of work, and then the next from the best state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from agent.run.tree.choice import Choice
from agent.run.tree.tree import NodeId, Tree
from agent.search.best_first import TIRED, BestFirst
from agent.search.graph import Graph
from agent.search.support.ranking import Ranking, exactly, why_first

__all__ = ["Auto"]

BEGUN = 1e-6
"""What a line that began at a state takes off its value: it tells equals apart, and nothing else."""


@dataclass(frozen=True, slots=True)
class Auto:
    """With a model, one line of work begins at the base state and continues until it submits. Only a line that ends
    without success (a goal test still fails, it repeats itself, its turns are used up) is followed by another. That one
    branches off at the state of highest value, of equals the one at which fewest lines began, then the newest; it
    shares the conversation up to there. Single edits are searched `best_first`. States that complete each other are
    merged first (`graph`).
    """

    single_edits: bool = False
    """The policy proposes single edits, of which there are many and of which nearly all help nothing."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """A merge that promises more than any state, else the state to begin at."""
        merge = Graph(stagnation=0).merge(tree)
        if merge is not None:
            return replace(merge, because="graph: together two states repair more than any does")
        if self.single_edits:
            choice = BestFirst(fatigue=TIRED).select(tree, rng)
            because = "best_first: the policy proposes single edits, and most help nothing"
            return choice and replace(choice, because=because)
        states = tree.view(self, _States).ranking
        best = [-item for _, item in states.best()]
        if not best:
            return None
        reason = why_first(best, lambda n: {"score": tree[n].value, "begun": tree.expansions(n)}, len(states))
        return Choice(best[0], because="a line of work begins at the best state", reasons=(reason,))


class _States:
    """A view: the states that may be expanded, the best first, of equals the newest."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.ranking = Ranking(exactly)

    def changed(self, node_id: NodeId) -> None:
        """Where the state stands among the others."""
        tree = self._tree
        score = tree[node_id].value - BEGUN * tree.expansions(node_id)
        self.ranking.put(-node_id, (score,) if tree.expandable(node_id) else None)

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: a subtree does not count here."""
