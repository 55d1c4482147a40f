"""AB-MCTS: at every node, sample whether a new child or one of the old ones promises more (wider or deeper)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass
from random import Random
from typing import Literal

from agent.search import Choice, Reason
from agent.search.posterior import Beta, Normal, Seen
from agent.search.ranking import why_first
from agent.tree import NodeId, Tree

__all__ = ["Adaptive"]


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Descend from the root. At each node draw what a new child would be worth, and what going on below the old ones
    would be; where the first is higher the node is expanded, else the child of the highest draw is gone on with. This
    is AB-MCTS-A (arXiv 2503.04412), with the arms and the default priors of the authors' TreeQuest.

    Every expansion is an observation: the value of the node that it led to, and 0 while it is in flight (virtual loss)
    or when it led nowhere new, which is our own choice. A new child is drawn for by the expansions of the node,
    going on by those below its children, and a child by its value and all the expansions in its subtree.
    """

    prior: Literal["normal", "beta"] = "normal"
    """What the values of an arm are drawn from: a normal distribution of unknown mean and variance, or coins (values
    are shares of a success) with the prior Beta(0.5, 0.5)."""
    mean: float = 0.0
    """Of the prior `normal`, as the next three are (`agent.search.posterior.Normal`)."""
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
            wider = self._draw(known.wider[node_id], rng)
            deeper = self._draw(known.deeper[node_id], rng)
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
        self._search = search
        self.wider: list[Seen] = []
        """What the expansions of a node gave."""
        self.deeper: list[Seen] = []
        """What the expansions below its children gave."""
        self._ranked: defaultdict[NodeId, list[tuple[float, NodeId]]] = defaultdict(list)
        self._rank: dict[NodeId, tuple[float, NodeId]] = {}
        self._changed: defaultdict[NodeId, set[NodeId]] = defaultdict(set)

    def changed(self, node_id: NodeId) -> None:
        """Count a new node's value for its parent, and expansions that were begun or taken back."""
        parent = self._tree.parent(node_id)
        if node_id == len(self.wider):
            self.wider.append(Seen())
            self.deeper.append(Seen())
            value = self._tree[node_id].value
            if parent is not None:
                self._observe(parent.id, Seen(0, value, value * value))
        begun = self._tree.expansions(node_id) - self.wider[node_id].n
        if begun:
            self._observe(node_id, Seen(begun))

    def changed_below(self, node_id: NodeId) -> None:
        """The node is ranked anew when its parent is asked for its children."""
        if (parent := self._tree.parent(node_id)) is not None:
            self._changed[parent.id].add(node_id)

    def arm(self, child: NodeId) -> Seen:
        """What is known of a child and all below it."""
        value = self._tree[child].value
        return Seen(1, value, value * value).plus(self.wider[child]).plus(self.deeper[child])

    def children(self, node_id: NodeId) -> list[NodeId]:
        """The children of the highest means, as many as are drawn for."""
        ranked = self._ranked[node_id]
        for child in self._changed.pop(node_id, ()):
            if child in self._rank:
                del ranked[bisect_left(ranked, self._rank.pop(child))]
            if self._tree.open_below(child):
                self._rank[child] = (-self._search.belief(self.arm(child)).mean, child)
                insort(ranked, self._rank[child])
        return [child for _, child in ranked[: self._search.arms]]

    def _observe(self, node_id: NodeId, seen: Seen) -> None:
        self.wider[node_id] = self.wider[node_id].plus(seen)
        self.changed_below(node_id)
        while (parent := self._tree.parent(node_id)) is not None:
            node_id = parent.id
            self.deeper[node_id] = self.deeper[node_id].plus(seen)
            self.changed_below(node_id)
