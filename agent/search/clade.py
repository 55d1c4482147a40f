"""Thompson sampling over clades: a state is worth what has come of it and of all that descends from it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from random import Random
from typing import Literal

from agent.search import Choice, Reason
from agent.search.measurements import Measurements
from agent.tree import NodeId, Tree

__all__ = ["Clade"]


@dataclass(frozen=True, slots=True)
class Clade:
    """Draw a worth for the root and for its children; go to the best child, with its draw, until no child's draw is
    higher than the node's own. That node is expanded, or measured again.

    A clade is a node with all its descendants. Its worth is drawn from `Beta(1 + s, 1 + f)`: `s` is the sum of the
    values measured in it, times `trials`; `f` is what they lack of 1 each, times `trials`. An expansion in flight is a
    measurement of 0 (virtual loss). The pooling and the posterior are those of the Huxley-Goedel Machine
    (arXiv 2510.21614; `tree.py` and `hgm.py` of metauto-ai/HGM), which draws for all nodes of the tree at once. The
    descent is our own: it draws along one path. A node has at most `width * log2(1 + n)` expansions while its clade has
    n nodes, so that a choice costs little more in a large tree than in a small one.

    To expand and to measure again are separate choices, as in HGM. A tree of n nodes, those in the making included, is
    expanded while `m ** alpha >= n - 1` with m measurements begun; else a node is measured again, and the draws on the
    way to it are by each node's own measurements. That pays where one state may be measured as different values; a
    deterministic suite says the same again.
    """

    value: Literal["clade", "self"] = "clade"
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
        value = "self" if measuring else self.value
        here = self._draw(tree, node_id, value, rng)
        while True:
            drawn = {c.id: self._draw(tree, c.id, value, rng) for c in tree.children(node_id) if tree.open_below(c.id)}
            if tree.expandable(node_id) and (measuring or not drawn or self._room(tree, node_id)):
                drawn[node_id] = here
            best, *others = sorted(drawn, key=lambda n: -drawn[n]["score"])
            rival = others[0] if others else None
            reasons.append(Reason(best, drawn[best], len(drawn), rival, None if rival is None else drawn[rival]))
            if best == node_id:
                return Choice(node_id, "measure" if measuring else "expand", reasons=tuple(reasons))
            node_id, here = best, drawn[best]

    def measures_again(self, tree: Tree) -> bool:
        """Whether measurements are too few for another expansion."""
        if self.remeasure == "never" or (self.remeasure == "flaky" and not tree.root.report.flaky):
            return False
        made = tree.view("measurements", Measurements)
        return bool(made.begun**self.alpha < len(tree) - 1 + made.expanding)

    def posterior(self, tree: Tree, node_id: NodeId, value: Literal["clade", "self"]) -> tuple[float, float]:
        """Successes and failures, each at least 0."""
        if value == "clade":
            measured, successes = tree.view("measurements", Measurements).below(node_id)
        else:
            values = [evaluation.value for evaluation in tree.evaluations(node_id)]
            measured, successes = len(values), sum(values)
        failures = max(0.0, measured - successes)  # a sum of floats may be a trace too large
        return self.trials * successes, self.trials * (failures + tree.pending_below(node_id))

    def _draw(self, tree: Tree, node_id: NodeId, value: Literal["clade", "self"], rng: Random) -> dict[str, float]:
        successes, failures = self.posterior(tree, node_id, value)
        score = rng.betavariate(1 + successes, 1 + failures)
        return {"score": score, "successes": successes, "failures": failures}

    def _room(self, tree: Tree, node_id: NodeId) -> bool:
        return tree.expansions(node_id) < self.width * log2(1 + tree.visits(node_id))
