"""A*: expand the state on what looks like the cheapest way to a solution."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from agent.actions import Debug, RunTests
from agent.run.tree.choice import Choice
from agent.run.tree.tree import Node, NodeId, Tree
from agent.search.support.ranking import Ranking, why_first

__all__ = ["AStar"]


@dataclass(frozen=True, slots=True)
class AStar:
    """Lowest `f = g + h + fatigue * expansions` first, the older node among equals: `g` is what the edits on the way
    to a node cost, `h` the estimate of what is left. ToolChain* (arXiv 2310.13227) searches actions by A*; the terms of
    the costs are our own.

    In the textbook a node is expanded once, with all its children. A policy proposes them one by one, and a model
    never ends, so that a node stays open and each expansion, in flight or ended, makes it a little dearer. With a
    `fatigue` of 0 it is the textbook's: a node is expanded until nothing is left to propose. Then, as long as `h`
    is never more than what is really left (`least` never is), a solved node that costs no more than the next choice is
    the cheapest of all. A state keeps the cost of the way on which it was first reached.
    """

    edit: float = 1.0
    """What each node below the root costs. This and all other weights are at least 0."""
    tokens: float = 0.0
    """What a thousand tokens that led to a node cost."""
    runs: float = 0.0
    """What a run of the tests costs: each node has its own, and those that the policy asked for."""
    seconds: float = 0.0
    """What a second costs that the tests of a node take."""
    failed: float = 0.0
    """What each failed test of a node costs."""
    estimate: Literal["value", "progress", "least"] = "value"
    """What `h` is: `rest * (1 - value)`, the same with the share of the goals that are reached, or one `edit`; of a
    solved node 0."""
    rest: float = 16.0
    """What is left to pay where nothing is reached."""
    fatigue: float = 0.3

    def __post_init__(self) -> None:
        if self.estimate not in ("value", "progress", "least"):
            raise ValueError(f"unknown estimate {self.estimate!r}: one of value, progress, least")
        for name in ("edit", "tokens", "runs", "seconds", "failed", "rest", "fatigue"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)}: give a number of 0 or more")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The open node of the lowest f."""
        del rng
        known = tree.view(self, lambda tree: _Open(tree, self))
        best = [node_id for _, node_id in known.ranking.best()]
        return Choice(best[0], reasons=(why_first(best, known.terms, len(known.ranking)),)) if best else None

    def cost(self, node: Node) -> float:
        """What it takes to come to a node from its parent."""
        asked = sum(isinstance(action, (RunTests, Debug)) for step in node.steps for action in step.actions)
        return (
            self.edit
            + self.tokens * sum(step.usage.tokens for step in node.steps) / 1000
            + self.runs * (1 + asked)
            + self.seconds * node.report.duration_s
            + self.failed * len(node.report.failures)
        )

    def left(self, node: Node) -> float:
        """The estimate of what it takes to come from a node to a solution."""
        if node.evaluation.solved:
            return 0.0
        if self.estimate == "least":
            return self.edit
        done = node.evaluation.progress if self.estimate == "progress" else node.value
        return self.rest * (1 - done)


class _Open:
    """A view: the open nodes by what they cost."""

    def __init__(self, tree: Tree, search: AStar) -> None:
        self._tree = tree
        self._search = search
        self._g: list[float] = []
        self.ranking = Ranking(lambda facts, _: -sum(facts))

    def changed(self, node_id: NodeId) -> None:
        """Price a new node, and rank it while it is open."""
        if node_id == len(self._g):
            node, parent = self._tree[node_id], self._tree.parent(node_id)
            self._g.append(0.0 if parent is None else self._g[parent.id] + self._search.cost(node))
        terms = self.terms(node_id)
        self.ranking.put(
            node_id, (terms["g"], terms["h"], terms["fatigue"]) if self._tree.expandable(node_id) else None
        )

    def changed_below(self, node_id: NodeId) -> None:
        """What comes of a node changes no cost."""

    def terms(self, node_id: NodeId) -> dict[str, float]:
        """The parts of f, which is the negative score."""
        left, fatigue = self._search.left(self._tree[node_id]), self._search.fatigue * self._tree.expansions(node_id)
        g = self._g[node_id]
        return {"score": -(g + left + fatigue), "g": g, "h": left, "fatigue": fatigue}
