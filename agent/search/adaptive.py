"""AB-MCTS: at every node, sample whether a new child or an existing one promises more (wider or deeper)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Literal

from agent.run.tree.aggregates import UNIT, exact
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.support.below import RankedChildren, sums
from agent.search.support.options import require_at_least, require_one_of
from agent.search.support.posterior import Beta, Normal, Seen
from agent.search.support.ranking import why_first


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Descend from the root. At each node, draw the worth of a new child and the worth of continuing below the existing
    children. If the first is higher, expand the node; else descend to the child with the highest draw. This is
    AB-MCTS-A (arXiv 2503.04412), with the arms and the default priors of the authors' TreeQuest.

    Every expansion is an observation: the value of the node that it led to, or 0 while it is in flight (virtual loss)
    or if it led to no new node (our own choice). The draw for a new child uses the node's own expansions, the draw for
    continuing those below its children, and the draw for a child its value and all expansions in its subtree.
    """

    prior: Literal["normal", "beta"] = "normal"
    """How the values of an arm are distributed: normally with unknown mean and variance, or as coins (a value is a
    fraction of a success) with the prior Beta(0.5, 0.5)."""
    mean: float = 0.0
    """This and the next three are parameters of the prior `normal` (`agent.search.support.posterior.Normal`)."""
    kappa: float = 1.0
    """How many observations the prior mean counts for, above 0."""
    nu: float = 1.0
    """Degrees of freedom of the prior of the variance, above 0."""
    tau2: float = 0.1
    """Scale of the prior of the variance, above 0."""
    arms: int = 4
    """Only this many children, those with the highest means, get a draw, so that a wide node costs no more time than a
    narrow one. With more arms, less of the work goes to the best child. Our own choice; AB-MCTS draws for all
    children."""

    def __post_init__(self) -> None:
        require_one_of(self, prior=("normal", "beta"))
        require_at_least(self, arms=1)
        for name in ("kappa", "nu", "tau2"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)}: give a number above 0")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the node at which the descent ends."""
        arms = tree.view(self, lambda tree: _Arms(tree, self))
        node_id, reasons = tree.root.id, list[Reason]()
        if not tree.open_below(node_id):
            return None
        while True:
            wider = self._draw(arms.wider(node_id), rng)
            deeper = self._draw(arms.deeper(node_id), rng)
            children = arms.children(node_id)
            if not children or (tree.expandable(node_id) and wider["score"] >= deeper["score"]):
                rival = {"deeper": deeper["score"]} if children else {}
                return Choice(node_id, reasons=(*reasons, Reason(node_id, wider | rival, 1 + bool(children))))
            draws = {child: self._draw(arms.arm(child), rng) for child in children}
            best = sorted(draws, key=lambda child: -draws[child]["score"])
            reasons.append(why_first(best, draws.__getitem__, len(best)))
            node_id = best[0]

    def posterior(self, observations: Seen) -> Normal | Beta:
        """The posterior of an arm's mean value."""
        prior = Beta(0.5, 0.5) if self.prior == "beta" else Normal(self.mean, self.kappa, self.nu, self.tau2)
        return prior.updated(observations)

    def _draw(self, observations: Seen, rng: Random) -> dict[str, float]:
        posterior = self.posterior(observations)
        return {"score": posterior.draw(rng), "mean": posterior.mean, "n": observations.n}


class _Arms:
    """A view: the observations of each node's arms, and its children with open nodes below them, sorted by mean."""

    def __init__(self, tree: Tree, search: Adaptive) -> None:
        self._tree = tree
        self._arms = search.arms
        self._own: list[tuple[int, ...]] = []
        """For each node, the number of its expansions and the sums of their values and squared values."""
        self._below = sums(tree, 3)
        """The same numbers for all expansions in a subtree."""
        self._siblings = RankedChildren(tree, lambda child: search.posterior(self.arm(child)).mean)

    def changed(self, node_id: NodeId) -> None:
        """Back up a new node's value to its parent; count expansions that were started or taken back."""
        if node_id == len(self._own):
            self._own.append((0, 0, 0))
            value, above = self._tree[node_id].value, self._tree.parent_id(node_id)
            if above is not None:
                self._observe(above, 0, exact(value), exact(value * value))
        begun = self._tree.expansions(node_id) - self._own[node_id][0]
        if begun:
            self._observe(node_id, begun, 0, 0)

    def changed_below(self, node_id: NodeId) -> None:
        """Rank the node again the next time its parent's children are read."""
        self._siblings.below(node_id)

    def wider(self, node_id: NodeId) -> Seen:
        """The observations from the node's own expansions."""
        return _observations(self._own[node_id])

    def deeper(self, node_id: NodeId) -> Seen:
        """The observations from the expansions below the node's children."""
        return _observations(every - own for every, own in zip(self._below[node_id], self._own[node_id], strict=True))

    def arm(self, child: NodeId) -> Seen:
        """The observations from a child and its subtree."""
        value = self._tree[child].value
        return Seen(1, value, value * value).plus(_observations(self._below[child]))

    def children(self, node_id: NodeId) -> list[NodeId]:
        """The children with the highest means, at most `arms`."""
        return [child for _, child in self._siblings.of(node_id).best(self._arms)]

    def _observe(self, node_id: NodeId, begun: int, total: int, squares: int) -> None:
        own = self._own[node_id]
        self._own[node_id] = (own[0] + begun, own[1] + total, own[2] + squares)
        self._below.add(node_id, (begun, total, squares))
        self._siblings.below(node_id)


def _observations(numbers: Iterable[int]) -> Seen:
    n, total, squares = numbers
    return Seen(n, total / UNIT, squares / UNIT)
