"""A*: expand the node on the path to a solution that is estimated to be cheapest."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from agent.actions import Debug, RunTests
from agent.run.tree.choice import Choice
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.options import require_at_least, require_one_of
from agent.search.support.ranking import Ranking, why_first


@dataclass(frozen=True, slots=True)
class AStar:
    """Lowest `f = g + h + fatigue * expansions` first, the older node among equals: `g` is the cost of the path to the
    node, `h` the estimated cost from there to a solution. ToolChain* (arXiv 2310.13227) searches actions by A*; the
    cost terms are our own.

    Textbook A* expands a node once, into all its children. Here a policy proposes children one by one, and a model
    never runs out of them, so a node stays open and each expansion, in flight or ended, makes it a little more
    expensive. With `fatigue` 0 this is the textbook algorithm: a node is expanded until nothing is left to propose.
    Then, if `h` is admissible (`least` is), a solved node that costs no more than the next choice is the cheapest of
    all. A transposition keeps the cost of the path on which its state was first reached.
    """

    edit: float = 1.0
    """The cost of each node below the root. All weights are at least 0."""
    tokens: float = 0.0
    """Cost of a thousand tokens spent on a node."""
    runs: float = 0.0
    """Cost of a test run: the one that measures the node, and each one that the policy asked for."""
    seconds: float = 0.0
    """Cost of a second of the node's test run."""
    failed: float = 0.0
    """Cost of each failed test of a node."""
    estimate: Literal["value", "progress", "least"] = "value"
    """The heuristic `h`: `rest * (1 - value)`, `rest * (1 - progress)` with the fraction of the goals that pass, or the
    cost of one `edit`. For a solved node it is 0."""
    rest: float = 16.0
    """Estimated cost to a solution from a state with value or progress 0."""
    fatigue: float = 0.3
    """Cost of each expansion that a node has had."""

    def __post_init__(self) -> None:
        require_one_of(self, estimate=("value", "progress", "least"))
        require_at_least(self, edit=0, tokens=0, runs=0, seconds=0, failed=0, rest=0, fatigue=0)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the open node with the lowest f."""
        del rng
        nodes = tree.view(self, lambda tree: _Open(tree, self))
        best = [node_id for _, node_id in nodes.ranking.best()]
        return Choice(best[0], reasons=(why_first(best, nodes.terms, len(nodes.ranking)),)) if best else None

    def cost(self, node: Node) -> float:
        """The cost of the step from a node's parent to the node."""
        asked = sum(isinstance(action, (RunTests, Debug)) for action in node.actions)
        return (
            self.edit
            + self.tokens * sum(step.usage.tokens for step in node.steps) / 1000
            + self.runs * (1 + asked)
            + self.seconds * node.report.duration_s
            + self.failed * len(node.report.failures)
        )

    def left(self, node: Node) -> float:
        """The heuristic `h`: the estimated cost from a node to a solution."""
        if node.evaluation.solved:
            return 0.0
        if self.estimate == "least":
            return self.edit
        done = node.evaluation.progress if self.estimate == "progress" else node.value
        return self.rest * (1 - done)


class _Open(View):
    """A view: the open nodes by f."""

    def __init__(self, tree: Tree, search: AStar) -> None:
        self._tree = tree
        self._search = search
        self._g: list[float] = []
        self.ranking = Ranking()

    def changed(self, node_id: NodeId) -> None:
        """Compute g for a new node; rank the node while it is open."""
        if node_id == len(self._g):
            node, parent = self._tree[node_id], self._tree.parent(node_id)
            self._g.append(0.0 if parent is None else self._g[parent.id] + self._search.cost(node))
        self.ranking.put(node_id, self.terms(node_id)["score"] if self._tree.expandable(node_id) else None)

    def terms(self, node_id: NodeId) -> dict[str, float]:
        """The terms of f; the score is -f."""
        left, fatigue = self._search.left(self._tree[node_id]), self._search.fatigue * self._tree.expansions(node_id)
        g = self._g[node_id]
        return {"score": -(g + left + fatigue), "g": g, "h": left, "fatigue": fatigue}
