"""Thompson sampling over clades: a state is worth the results of its whole subtree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2
from random import Random
from typing import Literal

from agent.run.tree.aggregates import UNIT, exact
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.below import sums
from agent.search.support.options import require_one_of
from agent.search.support.ranking import why_first

Value = Literal["clade", "self"]


@dataclass(frozen=True, slots=True)
class Clade:
    """Draw a worth for the root and for its children; descend to the best child, with its draw, until no child's draw
    is higher than the node's own. That node is expanded or measured again.

    A clade is a node with all its descendants. Its worth is drawn from `Beta(1 + s, 1 + f)`: `s` is `trials` times the
    sum of the values v measured in the clade, `f` is `trials` times the sum of `1 - v`. An expansion in flight counts
    as a measurement of 0 (virtual loss). The pooling and the posterior are those of the Huxley-Goedel Machine
    (arXiv 2510.21614; `tree.py` and `hgm.py` of metauto-ai/HGM), which draws for all nodes of the tree at once. The
    descent is our own: it draws along one path. A node has at most `width * log2(1 + n)` expansions while its clade has
    n nodes, so that the cost of a selection grows slowly with the tree.

    Expanding and measuring again are separate choices, as in HGM. A tree of n nodes, those in flight included, is
    expanded while `m ** alpha >= n - 1` with m measurements begun; else a node is measured again, and the draws of that
    descent use each node's own measurements only. Measuring again is useful if measurements of one state can differ; a
    deterministic suite repeats its result.
    """

    value: Value = "clade"
    """`clade`: a node's worth is that of its whole subtree; `self`: that of its own measurement only."""
    trials: float = 100.0
    """How many observations one measurement counts for, above 0. It is 1 in HGM, where a measurement is one task,
    solved or not; a fraction of many tests says more. 100 was best on simulated landscapes
    (`benchmarks.perf.search_sim`)."""
    width: float = 2.0
    """Above 0."""
    remeasure: Literal["flaky", "always", "never"] = "flaky"
    """Whether nodes are measured again; `flaky`: only if the base state has flaky tests."""
    alpha: float = 0.6
    """The exponent in (0, 1]; with a smaller one, more nodes are measured again."""

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
        here = self._draw(tree, node_id, value, rng)
        while True:
            children = [child.id for child in tree.children(node_id) if tree.open_below(child.id)]
            stays = tree.expandable(node_id) and (measuring or not children or self._may_widen(tree, node_id))
            drawn = {node_id: here} if stays else {}
            drawn |= {child: self._draw(tree, child, value, rng) for child in children}
            best = sorted(drawn, key=lambda each: -drawn[each]["score"])[:2]
            if best[0] == node_id or len(best) > 1:
                reasons.append(why_first(best, drawn.__getitem__, len(drawn)))
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
        failures = max(0.0, measured - successes)  # rounding can make a sum of floats slightly too large
        return self.trials * successes, self.trials * (failures + tree.pending_below(node_id))

    def _draw(self, tree: Tree, node_id: NodeId, value: Value, rng: Random) -> dict[str, float]:
        """A draw of the node's worth, and the parameters of its posterior."""
        successes, failures = self.posterior(tree, node_id, value)
        return {"score": rng.betavariate(1 + successes, 1 + failures), "successes": successes, "failures": failures}

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
        """Measurements started in the whole tree, each node's first included."""
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
