"""Thompson sampling over clades: a state is worth what has come of it and of all that descends from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import log, log2, sqrt
from random import Random
from statistics import NormalDist
from typing import Literal, NamedTuple

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.tree import NodeId, Tree
from agent.search.support.below import RankedChildren
from agent.search.support.measurements import Measurements
from agent.search.support.ranking import why_first

__all__ = ["Clade"]

Value = Literal["clade", "self"]
NORMAL = 25.0
"""From so many successes and as many failures on a Beta distribution is drawn from as a normal one."""
HIGH = 0.02
"""The probability that a draw from a normal distribution is high: above its reach."""
REACH = NormalDist().inv_cdf(1 - HIGH)
"""In standard deviations above the mean."""
RARELY = 1e-6
"""Less probable is a draw from a Beta distribution above its reach."""


@dataclass(frozen=True, slots=True)
class Clade:
    """Draw a worth for the root and for its children; go to the best child, with its draw, until no child's draw is
    higher than the node's own. That node is expanded, or measured again.

    A clade is a node with all its descendants. Its worth is drawn from `Beta(1 + s, 1 + f)`: `s` is the sum of the
    values measured in it, times `trials`; `f` is what they lack of 1 each, times `trials`. An expansion in flight is a
    measurement of 0 (virtual loss). The pooling and the posterior are those of the Huxley-Goedel Machine
    (arXiv 2510.21614; `tree.py` and `hgm.py` of metauto-ai/HGM), which draws for all nodes of the tree at once. The
    descent is our own: it draws along one path, and among many children only as often as that may change which of them
    wins (`_Clades.drawn`). A node has at most `width * log2(1 + n)` expansions while its clade has n nodes, so that a
    choice costs little more in a large tree than in a small one.

    To expand and to measure again are separate choices, as in HGM. A tree of n nodes, those in the making included, is
    expanded while `m ** alpha >= n - 1` with m measurements begun; else a node is measured again, and the draws on the
    way to it are by each node's own measurements. That pays where one state may be measured as different values; a
    deterministic suite says the same again.
    """

    value: Value = "clade"
    """`self`: a node is worth its own measurement only."""
    trials: float = 100.0
    """Above 0: how many coins one measurement counts for. It is 1 in HGM, where a measurement is one task, solved or
    not; a share of many tests says more. 100 was best on simulated landscapes (`benchmarks.perf.search_sim`)."""
    width: float = 2.0
    """Above 0."""
    remeasure: Literal["flaky", "always", "never"] = "flaky"
    """`flaky`: where tests of the base state were found to be."""
    alpha: float = 0.6
    """In (0, 1], the less, the more is measured again."""

    def __post_init__(self) -> None:
        if self.value not in ("clade", "self"):
            raise ValueError(f"unknown value {self.value!r}: one of clade, self")
        if not (self.trials > 0 and self.width > 0):
            raise ValueError(f"trials={self.trials}, width={self.width}: give numbers above 0")
        if self.remeasure not in ("flaky", "always", "never"):
            raise ValueError(f"unknown remeasure {self.remeasure!r}: one of flaky, always, never")
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: give a number above 0 and at most 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The node at which the descent ends."""
        node_id, reasons = tree.root.id, list[Reason]()
        if not tree.open_below(node_id):
            return None
        measuring = self.measures_again(tree)
        value: Value = "self" if measuring else self.value
        clades = tree.view((self, value), lambda tree: _Clades(tree, self, value))
        here = clades.belief(node_id).draw(rng)
        while True:
            children = clades.children(node_id)
            stays = tree.expandable(node_id) and (measuring or not children or self._room(tree, node_id))
            drawn = clades.drawn(children, {node_id: here} if stays else {}, rng)
            best = sorted(drawn, key=drawn.__getitem__, reverse=True)[:2]
            if best[0] == node_id or len(best) > 1:
                reasons.append(why_first(best, partial(clades.terms, drawn), len(children) + stays))
            if best[0] == node_id:
                return Choice(node_id, "measure" if measuring else "expand", reasons=tuple(reasons))
            node_id, here = best[0], drawn[best[0]]

    def measures_again(self, tree: Tree) -> bool:
        """Whether measurements are too few for another expansion."""
        if self.remeasure == "never" or (self.remeasure == "flaky" and not tree.root.report.flaky):
            return False
        made = tree.view("measurements", Measurements)
        return bool(made.begun**self.alpha < len(tree) - 1 + made.expanding)

    def posterior(self, tree: Tree, node_id: NodeId, value: Value) -> tuple[float, float]:
        """Successes and failures, each at least 0."""
        if value == "clade":
            measured, successes = tree.view("measurements", Measurements).below(node_id)
        else:
            values = [evaluation.value for evaluation in tree.evaluations(node_id)]
            measured, successes = len(values), sum(values)
        failures = max(0.0, measured - successes)  # a sum of floats may be a trace too large
        return self.trials * successes, self.trials * (failures + tree.pending_below(node_id))

    def _room(self, tree: Tree, node_id: NodeId) -> bool:
        return tree.expansions(node_id) < self.width * log2(1 + tree.visits(node_id))


class _Clades:
    """A view: what each clade is believed to be worth, and the children of each node that something is open below, by
    the reach of what is drawn for them."""

    def __init__(self, tree: Tree, search: Clade, value: Value) -> None:
        self._tree = tree
        self._search = search
        self._value = value
        self._siblings = RankedChildren(tree, self._rank)
        self._beliefs: dict[NodeId, _Belief] = {}

    def changed(self, node_id: NodeId) -> None:
        """What a posterior is made of is counted over subtrees."""

    def changed_below(self, node_id: NodeId) -> None:
        """The node is ranked anew when its parent is asked for its children."""
        self._siblings.below(node_id)

    def children(self, node_id: NodeId) -> list[tuple[float, NodeId]]:
        """Each with its reach, negative, the highest first."""
        return self._siblings.of(node_id)

    def belief(self, node_id: NodeId) -> _Belief:
        """What is believed of the node's clade now."""
        return _Belief.of(*self._search.posterior(self._tree, node_id, self._value))

    def drawn(
        self, children: list[tuple[float, NodeId]], drawn: dict[NodeId, float], rng: Random
    ) -> dict[NodeId, float]:
        """With what is drawn for the children, of two at least, where there are two.

        What is drawn for a child is above its reach with the probability HIGH. Where another draw is above that reach
        already, the child can win in this case only; so it is settled first in which of the cases it comes to that, for
        all such children at once, and nothing is drawn in the others: the best child is as if all had been drawn for.
        """
        top, at = max(drawn.values(), default=0.0), 0
        for negative, child in children:
            if top > -negative and len(drawn) > 1:
                break
            drawn[child] = self._beliefs[child].draw(rng)
            top = max(top, drawn[child])
            at += 1
        while (at := at + _misses(rng)) < len(children):
            child = children[at][1]
            if self._beliefs[child].normal:
                drawn[child] = self._beliefs[child].draw_high(rng)
            at += 1
        return drawn

    def terms(self, drawn: Mapping[NodeId, float], node_id: NodeId) -> dict[str, float]:
        """What was drawn for a node, and from what."""
        belief = self._beliefs.get(node_id) or self.belief(node_id)
        return {"score": drawn[node_id], "successes": belief.successes, "failures": belief.failures}

    def _rank(self, child: NodeId) -> float:
        belief = self._beliefs[child] = self.belief(child)
        return -belief.reach


class _Belief(NamedTuple):
    """What a clade is worth: `Beta(1 + successes, 1 + failures)`, or the normal distribution of the same mean and
    variance where the two are nearly the same, from which it is several times cheaper to draw."""

    successes: float
    failures: float
    mean: float
    deviation: float
    """The standard deviation."""
    normal: bool

    @classmethod
    def of(cls, successes: float, failures: float) -> _Belief:
        """After these."""
        n = 2 + successes + failures
        mean = (1 + successes) / n
        normal = successes >= NORMAL <= failures
        return cls(successes, failures, mean, sqrt(mean * (1 - mean) / (n + 1)), normal)

    @property
    def reach(self) -> float:
        """A draw from a normal distribution is above it with the probability HIGH, one from a Beta distribution with
        at most RARELY: that is sub-Gaussian with a variance of `1 / (4 * (a + b + 1))`."""
        if self.normal:
            return self.mean + REACH * self.deviation
        return self.mean + sqrt(-log(RARELY) / (2 * (self.successes + self.failures + 3)))

    def draw(self, rng: Random) -> float:
        """In [0, 1]."""
        if not self.normal:
            return rng.betavariate(1 + self.successes, 1 + self.failures)
        return self._inside(rng.gauss(self.mean, self.deviation))

    def draw_high(self, rng: Random) -> float:
        """From the normal distribution, given that it is above the reach."""
        above = -NormalDist().inv_cdf(HIGH * (1 - rng.random()))
        return self._inside(self.mean + above * self.deviation)

    def _inside(self, drawn: float) -> float:
        return drawn if 0.0 <= drawn <= 1.0 else self.mean


def _misses(rng: Random) -> int:
    """How many draws are not high before the next one that is."""
    return int(log(1 - rng.random()) / log(1 - HIGH))
