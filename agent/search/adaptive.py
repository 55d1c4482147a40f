"""AB-MCTS: at every node, sample whether a new child or one of the old ones promises more (wider or deeper)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Literal

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.tree import NodeId, Tree
from agent.search.support.below import UNIT, RankedChildren, exact, sums
from agent.search.support.posterior import Beta, Normal, Seen
from agent.search.support.ranking import why_first

__all__ = ["Adaptive"]


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Descend from the root. At each node draw what a new child would be worth, and what going on below the old ones
    would be; where the first is higher the node is expanded, else the search descends to the child of the highest draw.
    This is AB-MCTS-A (arXiv 2503.04412), with the arms and the default priors of the authors' TreeQuest.

    Every expansion is an observation: the value of the node that it led to, and 0 while it is in flight (virtual loss)
    or when it led nowhere new, which is our own choice. A new child is drawn for by the expansions of the node,
    going on by those below its children, and a child by its value and all the expansions in its subtree.
    """

    prior: Literal["normal", "beta"] = "normal"
    """What the values of an arm are drawn from: a normal distribution of unknown mean and variance, or coins (values
    are shares of a success) with the prior Beta(0.5, 0.5)."""
    mean: float = 0.0
    """Of the prior `normal`, as the next three are (`agent.search.support.posterior.Normal`)."""
    kappa: float = 1.0
    nu: float = 1.0
    tau2: float = 0.1
    arms: int = 4
    """Children that are drawn for: those of the highest mean, so that a wide node costs no more than another. The more,
    the less of the work goes to the best. Our own choice; AB-MCTS draws for all."""

    def __post_init__(self) -> None:
        if self.prior not in ("normal", "beta"):
            raise ValueError(f"unknown prior {self.prior!r}: one of normal, beta")
        for name in ("kappa", "nu", "tau2"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)}: give a number above 0")
        if self.arms < 1:
            raise ValueError(f"arms={self.arms}: give at least 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The node at which the descent ends."""
        known = tree.view(self, lambda tree: _Arms(tree, self))
        node_id, reasons = tree.root.id, list[Reason]()
        if not tree.open_below(node_id):
            return None
        while True:
            wider = self._draw(known.wider(node_id), rng)
            deeper = self._draw(known.deeper(node_id), rng)
            children = known.children(node_id)
            if not children or (tree.expandable(node_id) and wider["score"] >= deeper["score"]):
                rival = {"deeper": deeper["score"]} if children else {}
                return Choice(node_id, reasons=(*reasons, Reason(node_id, wider | rival, 1 + bool(children))))
            drawn = {child: self._draw(known.arm(child), rng) for child in children}
            best = sorted(drawn, key=lambda child: -drawn[child]["score"])
            reasons.append(why_first(best, drawn.__getitem__, len(best)))
            node_id = best[0]

    def belief(self, seen: Seen) -> Normal | Beta:
        """What is believed of an arm's values."""
        prior = Beta(0.5, 0.5) if self.prior == "beta" else Normal(self.mean, self.kappa, self.nu, self.tau2)
        return prior.updated(seen)

    def _draw(self, seen: Seen, rng: Random) -> dict[str, float]:
        belief = self.belief(seen)
        return {"score": belief.draw(rng), "mean": belief.mean, "n": seen.n}


class _Arms:
    """A view: what is known of each node's arms, and its children that something is open below, by their means."""

    def __init__(self, tree: Tree, search: Adaptive) -> None:
        self._tree = tree
        self._arms = search.arms
        self._own: list[tuple[int, ...]] = []
        """What the expansions of a node gave: their number, and the sums of their values and of the squares."""
        self._below = sums(tree, 3)
        """The same of all expansions in a subtree."""
        self._siblings = RankedChildren(tree, lambda child: -search.belief(self.arm(child)).mean)

    def changed(self, node_id: NodeId) -> None:
        """Count a new node's value for its parent, and expansions that were begun or taken back."""
        if node_id == len(self._own):
            self._own.append((0, 0, 0))
            value, above = self._tree[node_id].value, self._tree.parent_id(node_id)
            if above is not None:
                self._observe(above, 0, exact(value), exact(value * value))
        begun = self._tree.expansions(node_id) - self._own[node_id][0]
        if begun:
            self._observe(node_id, begun, 0, 0)

    def changed_below(self, node_id: NodeId) -> None:
        """The node is ranked anew when its parent is asked for its children."""
        self._siblings.below(node_id)

    def wider(self, node_id: NodeId) -> Seen:
        """What the expansions of a node gave."""
        return _seen(self._own[node_id])

    def deeper(self, node_id: NodeId) -> Seen:
        """What the expansions below its children gave."""
        return _seen(every - own for every, own in zip(self._below[node_id], self._own[node_id], strict=True))

    def arm(self, child: NodeId) -> Seen:
        """What is known of a child and all below it."""
        value = self._tree[child].value
        return Seen(1, value, value * value).plus(_seen(self._below[child]))

    def children(self, node_id: NodeId) -> list[NodeId]:
        """The children of the highest means, as many as are drawn for."""
        return [child for _, child in self._siblings.of(node_id)[: self._arms]]

    def _observe(self, node_id: NodeId, begun: int, total: int, squares: int) -> None:
        own = self._own[node_id]
        self._own[node_id] = (own[0] + begun, own[1] + total, own[2] + squares)
        self._below.add(node_id, (begun, total, squares))
        self._siblings.below(node_id)


def _seen(numbers: Iterable[int]) -> Seen:
    n, total, squares = numbers
    return Seen(n, total / UNIT, squares / UNIT)
