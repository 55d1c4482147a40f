"""Reproduce, then branch: lines of work begin with a test that shows the issue, and several repairs follow a test."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agent.run.tree.choice import REPRODUCTION, Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.auto import Auto
from agent.search.continuing import OpenLines, continues


@dataclass(frozen=True, slots=True)
class Reproduce:
    """A line of work that begins at the base state is first asked only for a test that reproduces the issue. The
    state with that test becomes a further starting point: a line that begins there shares the test and the
    conversation up to it. The next line begins at the starting point where the fewest lines have begun. On a tie, a
    state with a test comes before the base state, so every second line is independent of the earlier ones.

    If a line ends without a `submit`, one further line begins at its best state.
    """

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select where the next line of work begins."""
        if (node_id := _promising(tree)) is not None:
            because = "the best state of a line of work that ended without a submission"
            return Choice(node_id, because=because, reasons=(_reason(tree, node_id, 1),))
        root = tree.root.id
        places = [*tree.view(self, _Shown).states, *([root] if tree.expandable(root) else [])]
        places = [node_id for node_id in places if tree.expandable(node_id)]
        if not places:
            return Auto().select(tree, rng)
        node_id = min(places, key=lambda each: (tree.expansions(each), each == root, -each))
        if node_id != root:
            because = "a state with a test that reproduces the issue"
            return Choice(node_id, because=because, reasons=(_reason(tree, node_id, len(places)),))
        return Choice(root, kind=REPRODUCTION, independent=True, reasons=(_reason(tree, root, len(places)),))


class _Shown(View):
    """A view: the states with a test that shows the issue and nothing else."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.states = dict[NodeId, None]()

    def changed(self, node_id: NodeId) -> None:
        """Note whether the state is one of these."""
        if self._tree[node_id].evaluation.shows_the_issue:
            self.states.setdefault(node_id)


def _promising(tree: Tree) -> NodeId | None:
    """The best state of the oldest line that ended without a `submit`, if it is better than the base state and no other
    line has begun there."""
    for end in tree.view(OpenLines, OpenLines).ended:
        if tree[end].submitted:
            continue
        line = [end]
        while continues(tree, line[-1]):
            line.append(tree.path(line[-1])[-2].id)
        states = [each for each in line if tree.expandable(each)]
        best = max(states, key=lambda each: (tree[each].value, each), default=tree.root.id)
        if tree[best].value > tree.root.value and tree.expansions(best) == (best != end):
            return best
    return None


def _reason(tree: Tree, node_id: NodeId, among: int) -> Reason:
    return Reason(node_id, {"score": tree[node_id].value, "begun": float(tree.expansions(node_id))}, among)
