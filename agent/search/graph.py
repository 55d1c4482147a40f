"""Monte Carlo graph search: tree search that merges two branches if neither improves alone."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.mcts import Mcts
from agent.search.support.options import require_at_least
from agent.search.support.repairs import Repairs


@dataclass(frozen=True, slots=True)
class Graph:
    """Merge two branches if together they repair more than any single state; else select as `mcts` does.

    A branch is worth merging if no other state repairs a proper superset of the tests that its head repairs
    (`agent.search.support.repairs`), and if it is stagnant: it has at least `stagnation` nodes below its head, none
    worth more than the head, or nothing in it can be expanded any more. The pair that repairs most together comes
    first, the more valuable among equals. No pair is merged twice, whatever the result.

    Two options also work if no test is repaired by only one of the branches. They need values between the value of
    the base state and 1, such as a judge gives. `partial` also merges the best states of two stagnant branches.
    `references` shows the best states of other branches to the policy when it continues a stagnant branch. A branch
    is the subtree of one child of the root; at the root itself, every branch counts as another branch.

    References between branches, their fusion and stagnation as its trigger are those of Monte Carlo graph search
    (AutoMLGen, arXiv 2510.08511); which branches are merged, and what stagnation means, are our own choice.
    """

    stagnation: int = 0
    """How many nodes without an improvement make a branch stagnant, at least 0; with 0, branches merge at once. A merge
    costs one measurement and no proposal, so waiting seldom pays."""
    candidates: int = 3
    """How many of the states that repair the same tests are tried, at least 1; the most valuable ones are taken."""
    partial: bool = False
    """Whether to merge the best states of two branches if both are better than the base state and neither is solved,
    even if the same tests pass in both."""
    references: int = 0
    """How many states of other branches, the best of each, a policy sees in a stagnant branch, at least 0."""
    c: float = 0.1
    """Weight of exploration when nothing is merged (`agent.search.mcts.Mcts`)."""
    alpha: float = 0.25
    """Exponent of progressive widening when nothing is merged (`agent.search.mcts.Mcts`)."""

    def __post_init__(self) -> None:
        require_at_least(self, stagnation=0, candidates=1, references=0)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select a merge, else what `mcts` selects, with references from other branches where it stagnates."""
        if (merge := self.merge(tree)) is not None:
            return merge
        choice = Mcts(c=self.c, alpha=self.alpha).select(tree, rng)
        return choice and replace(choice, references=self._references(tree, choice.node))

    def merge(self, tree: Tree) -> Choice | None:
        """Return the merge to make now, or None. Its node may be closed."""
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
        """Yield the merges that are possible now and have not been started yet."""
        repairs = tree.view("repairs", Repairs)
        heads = {tests: self._heads(tree, repairs.nodes(tests)) for tests in repairs.most}
        for one, another in combinations(repairs.most, 2):
            for pair in product(heads[one], heads[another]):
                ours, theirs = sorted(pair, key=lambda n: (-tree[n].value, n))
                if _new(tree, ours, theirs):
                    yield _Merge(-len(one | another), -tree[ours].value - tree[theirs].value, ours, theirs)
        heads_of_branches = tree.view("heads", Heads).by_branch().values() if self.partial else ()
        stagnant = [n for n in heads_of_branches if not tree[n].evaluation.solved and self._stagnates(tree, n)]
        for ours, theirs in combinations(stagnant, 2):
            if _new(tree, ours, theirs):
                yield _Merge(0, -tree[ours].value - tree[theirs].value, ours, theirs)

    def _heads(self, tree: Tree, nodes: Sequence[NodeId]) -> list[NodeId]:
        best = islice((n for n in nodes if tree.value_max(n) <= tree[n].value), self.candidates)
        return [n for n in best if self._stagnates(tree, n)]

    def _stagnates(self, tree: Tree, head: NodeId) -> bool:
        """Whether a branch is stagnant, given its best state: there are enough nodes below that state, or nothing in it
        can be expanded any more."""
        return tree.visits(head) > self.stagnation or not tree.open_below(head)

    def _references(self, tree: Tree, node: NodeId) -> tuple[NodeId, ...]:
        """Return the best states of branches other than the node's, the best first; none while the node's own branch
        makes progress."""
        if not self.references:
            return ()
        heads = tree.view("heads", Heads).by_branch()
        own = heads.pop(tree.path(node)[1].id, None) if node != tree.root.id else None
        if own is not None and not self._stagnates(tree, own):
            return ()
        return tuple(heads.values())[: self.references]


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


def _new(tree: Tree, one: NodeId, another: NodeId) -> bool:
    """Whether two states can be merged and have not been merged yet. Neither may be an ancestor of the other."""
    tried = tree.begun(one, "fuse", another) or tree.begun(another, "fuse", one)
    first, last = sorted((one, another))
    return not tried and not any(first in (node.id, *node.parents) for node in tree.path(last))


class Heads(View):
    """A view of the tree: the best state of each branch, if it is better than the base state. Pruned states do not
    count."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._branch: dict[NodeId, NodeId] = {}
        self._better: dict[NodeId, list[tuple[float, NodeId]]] = {}
        """The states of each branch that are better than the base state, the best first."""

    def changed(self, node_id: NodeId) -> None:
        """Add a new node."""
        node = self._tree[node_id]
        if not node.parents or node_id in self._branch:
            return
        begin = self._branch[node_id] = self._branch.get(node.parents[0], node_id)
        if node.value > self._tree.root.value:
            insort(self._better.setdefault(begin, []), (-node.value, node_id))

    def by_branch(self) -> dict[NodeId, NodeId]:
        """The heads by the child of the root with which their branch begins; the best branch first."""
        kept = ((begin, self._kept(states)) for begin, states in self._better.items())
        return dict(
            sorted(((b, n) for b, n in kept if n is not None), key=lambda each: (-self._tree[each[1]].value, each[1]))
        )

    def _kept(self, states: Sequence[tuple[float, NodeId]]) -> NodeId | None:
        return next((node_id for _, node_id in states if not self._tree.pruned(node_id)), None)
