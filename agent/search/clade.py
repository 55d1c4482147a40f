"""Thompson sampling over clades: a state is worth the results of its whole subtree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import log, log2, sqrt
from random import Random
from statistics import NormalDist
from typing import Literal, NamedTuple

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.below import UNIT, RankedChildren, exact, sums
from agent.search.support.options import require_one_of
from agent.search.support.ranking import why_first

Value = Literal["clade", "self"]
NORMAL = 25.0
"""With at least this many successes and failures each, a Beta distribution is replaced by a normal one."""
HIGH = 0.02
"""The probability that a draw from a normal distribution is high, that is, above its reach."""
REACH = NormalDist().inv_cdf(1 - HIGH)
"""In standard deviations above the mean."""
RARELY = 1e-6
"""An upper bound of the probability that a draw from a Beta distribution is above its reach."""


@dataclass(frozen=True, slots=True)
class Clade:
    """Draw a worth for the root and for its children; descend to the best child, with its draw, until no child's draw
    is higher than the node's own. That node is expanded or measured again.

    A clade is a node with all its descendants. Its worth is drawn from `Beta(1 + s, 1 + f)`: `s` is `trials` times the
    sum of the values v measured in the clade, `f` is `trials` times the sum of `1 - v`. An expansion in flight counts
    as a measurement of 0 (virtual loss). The pooling and the posterior are those of the Huxley-Goedel Machine
    (arXiv 2510.21614; `tree.py` and `hgm.py` of metauto-ai/HGM), which draws for all nodes of the tree at once. The
    descent is our own: it draws along one path, and among many children only as often as a draw may change the winner
    (`_Clades.drawn`). A node has at most `width * log2(1 + n)` expansions while its clade has n nodes, so that a
    selection costs little more in a large tree than in a small one.

    Expanding and measuring again are separate choices, as in HGM. A tree of n nodes, those in flight included, is
    expanded while `m ** alpha >= n - 1` with m measurements begun; else a node is measured again, and the draws of that
    descent use each node's own measurements only. Measuring again is useful if measurements of one state can differ; a
    deterministic suite repeats its result.
    """

    value: Value = "clade"
    """`self`: a node is worth its own measurement only."""
    trials: float = 100.0
    """How many observations one measurement counts for, above 0. It is 1 in HGM, where a measurement is one task,
    solved or not; a fraction of many tests says more. 100 was best on simulated landscapes
    (`benchmarks.perf.search_sim`)."""
    width: float = 2.0
    """Above 0."""
    remeasure: Literal["flaky", "always", "never"] = "flaky"
    """`flaky`: only if the base state has flaky tests."""
    alpha: float = 0.6
    """In (0, 1]; with a smaller number more is measured again."""

    def __post_init__(self) -> None:
        require_one_of(self, value=("clade", "self"), remeasure=("flaky", "always", "never"))
        if not (self.trials > 0 and self.width > 0):
            raise ValueError(f"trials={self.trials}, width={self.width}: give numbers above 0")
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha}: give a number above 0 and at most 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the node at which the descent ends."""
        node_id, reasons = tree.root.id, list[Reason]()
        if not tree.open_below(node_id):
            return None
        measuring = self.measures_again(tree)
        value: Value = "self" if measuring else self.value
        clades = tree.view((self, value), lambda tree: _Clades(tree, self, value))
        here = clades.posterior(node_id).draw(rng)
        while True:
            children = clades.children(node_id)
            stays = tree.expandable(node_id) and (measuring or not children or self._may_widen(tree, node_id))
            drawn = clades.drawn(children, {node_id: here} if stays else {}, rng)
            best = sorted(drawn, key=drawn.__getitem__, reverse=True)[:2]
            if best[0] == node_id or len(best) > 1:
                reasons.append(why_first(best, partial(clades.terms, drawn), len(children) + stays))
            if best[0] == node_id:
                return Choice(node_id, "measure" if measuring else "expand", reasons=tuple(reasons))
            node_id, here = best[0], drawn[best[0]]

    def measures_again(self, tree: Tree) -> bool:
        """Whether there are too few measurements for another expansion."""
        if self.remeasure == "never" or (self.remeasure == "flaky" and not tree.root.report.flaky):
            return False
        measurements = tree.view("measurements", _Measurements)
        return bool(measurements.begun**self.alpha < len(tree) - 1 + measurements.expanding)

    def posterior(self, tree: Tree, node_id: NodeId, value: Value) -> tuple[float, float]:
        """Successes and failures, each at least 0."""
        if value == "clade":
            measured, successes = tree.view("measurements", _Measurements).below(node_id)
        else:
            values = [evaluation.value for evaluation in tree.evaluations(node_id)]
            measured, successes = len(values), sum(values)
        failures = max(0.0, measured - successes)  # a sum of floats may be a trace too large
        return self.trials * successes, self.trials * (failures + tree.pending_below(node_id))

    def _may_widen(self, tree: Tree, node_id: NodeId) -> bool:
        return tree.expansions(node_id) < self.width * log2(1 + tree.visits(node_id))


class _Measurements(View):
    """A view: the measurements of states, repeated ones included, per subtree and in the whole tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._again: Counter[NodeId] = Counter()
        self._begun: Counter[NodeId] = Counter()
        self._pending: Counter[NodeId] = Counter()
        self._below = sums(tree, 2)
        self.begun = 0
        """Measurements begun in the whole tree, each node's first included."""
        self.expanding = 0
        """Expansions in flight in the whole tree."""

    def changed(self, node_id: NodeId) -> None:
        """Count new measurements and expansions of the node."""
        tree = self._tree
        begun, pending = 1 + tree.begun(node_id, "measure"), tree.pending_at(node_id)
        self.begun += begun - self._begun[node_id]
        self.expanding += pending - self._pending[node_id]
        self._begun[node_id], self._pending[node_id] = begun, pending
        _, *again = tree.evaluations(node_id)
        new = again[self._again[node_id] :]
        self._again[node_id] = len(again)
        if new:
            self._below.add(node_id, (len(new), sum(exact(evaluation.value) for evaluation in new)))

    def below(self, node_id: NodeId) -> tuple[int, float]:
        """The number of measurements in the node's subtree, and the sum of their values."""
        count, total = self._below[node_id]
        return self._tree.visits(node_id) + count, self._tree.value_sum(node_id) + total / UNIT


class _Clades(View):
    """A view: the posterior of each clade, and the children of each node with open nodes below them, sorted by the
    reach of their draws."""

    def __init__(self, tree: Tree, search: Clade, value: Value) -> None:
        self._tree = tree
        self._search = search
        self._value = value
        self._siblings = RankedChildren(tree, self._rank)
        self._posteriors: dict[NodeId, _Posterior] = {}

    def changed_below(self, node_id: NodeId) -> None:
        """The node is ranked again the next time its parent's children are read."""
        self._siblings.below(node_id)

    def children(self, node_id: NodeId) -> list[tuple[float, NodeId]]:
        """Pairs of a negative reach and a child, the highest reach first."""
        return self._siblings.of(node_id)

    def posterior(self, node_id: NodeId) -> _Posterior:
        """The current posterior of the node's clade."""
        return _Posterior.of(*self._search.posterior(self._tree, node_id, self._value))

    def drawn(
        self, children: list[tuple[float, NodeId]], drawn: dict[NodeId, float], rng: Random
    ) -> dict[NodeId, float]:
        """Add the draws of the children to `drawn`, so that it holds at least two if there are two.

        A child's draw is above its reach with probability HIGH. If another draw is already above that reach, the child
        can only win with such a high draw. So it is decided first which of these children have a high draw, for all of
        them at once, and only those are drawn: the winner is distributed as if every child had been drawn.
        """
        top, at = max(drawn.values(), default=0.0), 0
        for negative, child in children:
            if top > -negative and len(drawn) > 1:
                break
            drawn[child] = self._posteriors[child].draw(rng)
            top = max(top, drawn[child])
            at += 1
        while (at := at + _misses(rng)) < len(children):
            child = children[at][1]
            if self._posteriors[child].normal:
                drawn[child] = self._posteriors[child].draw_high(rng)
            at += 1
        return drawn

    def terms(self, drawn: Mapping[NodeId, float], node_id: NodeId) -> dict[str, float]:
        """A node's draw, and the parameters of its posterior."""
        posterior = self._posteriors.get(node_id) or self.posterior(node_id)
        return {"score": drawn[node_id], "successes": posterior.successes, "failures": posterior.failures}

    def _rank(self, child: NodeId) -> float:
        posterior = self._posteriors[child] = self.posterior(child)
        return -posterior.reach


class _Posterior(NamedTuple):
    """The distribution of a clade's worth: `Beta(1 + successes, 1 + failures)`, or the normal distribution of the same
    mean and variance if the two are nearly equal, as a draw from it is several times cheaper."""

    successes: float
    failures: float
    mean: float
    deviation: float
    """The standard deviation."""
    normal: bool

    @classmethod
    def of(cls, successes: float, failures: float) -> _Posterior:
        """The posterior after these successes and failures."""
        n = 2 + successes + failures
        mean = (1 + successes) / n
        normal = successes >= NORMAL <= failures
        return cls(successes, failures, mean, sqrt(mean * (1 - mean) / (n + 1)), normal)

    @property
    def reach(self) -> float:
        """A draw from a normal distribution exceeds it with probability HIGH, a draw from a Beta distribution with at
        most RARELY, because Beta(a, b) is sub-Gaussian with a variance of `1 / (4 * (a + b + 1))`."""
        if self.normal:
            return self.mean + REACH * self.deviation
        return self.mean + sqrt(-log(RARELY) / (2 * (self.successes + self.failures + 3)))

    def draw(self, rng: Random) -> float:
        """A draw, in [0, 1]."""
        if not self.normal:
            return rng.betavariate(1 + self.successes, 1 + self.failures)
        return self._inside(rng.gauss(self.mean, self.deviation))

    def draw_high(self, rng: Random) -> float:
        """A draw from the normal distribution, given that it is above the reach."""
        above = -NormalDist().inv_cdf(HIGH * (1 - rng.random()))
        return self._inside(self.mean + above * self.deviation)

    def _inside(self, drawn: float) -> float:
        return drawn if 0.0 <= drawn <= 1.0 else self.mean


def _misses(rng: Random) -> int:
    """How many draws are not high before the next high one."""
    return int(log(1 - rng.random()) / log(1 - HIGH))
