"""The default search: best-first for single edits; with a model, one line of work after another from the best state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.best_first import TIRED, BestFirst
from agent.search.graph import Graph
from agent.search.support.ranking import Ranking, why_first

BEGUN = 1e-6
"""The penalty for each line of work that began at a state, just large enough to break ties."""


@dataclass(frozen=True, slots=True)
class Auto:
    """With a model, one line of work begins at the base state and continues until it submits. Another line follows only
    if that one fails (a goal test still fails, the model repeats itself, or its turns are used up). The new line
    branches off at the state with the highest value and shares the conversation up to that state; on a tie, it branches
    off at the state where the fewest lines began, then at the newest. Policies that propose single edits are searched
    with `best_first`. In either case, states that complement each other are merged first (`graph`).
    """

    single_edits: bool = False
    """Whether the policy proposes single edits, which are many and nearly all useless."""

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select a merge of two states if one is due, else the state where the next line begins."""
        merge = Graph(stagnation=0).merge(tree)
        if merge is not None:
            return replace(merge, because="graph: two states together repair more than any single state")
        if self.single_edits:
            choice = BestFirst(fatigue=TIRED).select(tree, rng)
            because = "search: best_first, since most single edits have no effect"
            return choice and replace(choice, because=because)
        states = tree.view(self, _States).ranking
        best = [-item for _, item in states.best()]
        if not best:
            return None
        reason = why_first(best, lambda n: {"score": tree[n].value, "begun": tree.expansions(n)}, len(states))
        return Choice(best[0], because="a line of work begins at the best state", reasons=(reason,))


class _States(View):
    """A view: the expandable states, the best first; among equals, the newest first."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.ranking = Ranking()

    def changed(self, node_id: NodeId) -> None:
        """Rank the state again."""
        tree = self._tree
        score = tree[node_id].value - BEGUN * tree.expansions(node_id)
        self.ranking.put(-node_id, score if tree.expandable(node_id) else None)
