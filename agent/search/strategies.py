"""CodeTree's search: propose strategies, write a solution for each, and debug it while a critic or the tests allow."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.continuing import continues
from agent.search.support.options import require_at_least
from agent.search.support.ranking import why_first


@dataclass(frozen=True, slots=True)
class Strategies:
    """Typed nodes: the root's children are strategies in words (`kind` "strategy"), a strategy's child implements it
    ("solution"), and a solution's children repair what still fails ("debug").

    A solution, and each repair, is a line of work that continues until it ends (`agent.search.continuing`); it is
    repaired if it failed, or was submitted although a goal test fails. A critic's verdict decides, recorded as parts of
    the evaluation, each 1 or 0: `accept` ends the search, `abort` ends the branch; otherwise the state is refined.
    Whatever a critic says, a state with a lower value than its parent ends its branch. Without a critic the value alone
    decides. Among the states that may have a child, the highest value comes first, among equals the deeper node, then
    the older one.

    This is CodeTree's search (arXiv 2411.04329; `llm_agent_guide.py` of SalesforceAIResearch/CodeTree) except for the
    order: CodeTree goes depth first, in the order in which the strategies were proposed.
    """

    strategies: int = 4
    """How many strategies are proposed, at least 1."""
    debugs: int = 2
    """How many children repair one state, at least 1."""
    depth: int = 3
    """Generations on a path, at least 1: a solution, and the states that repair it one after the other."""
    generations: int = 20
    """Solutions and repairs in the whole search, failed ones included, at least 1."""

    def __post_init__(self) -> None:
        require_at_least(self, strategies=1, debugs=1, depth=1, generations=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the root while strategies are missing, else the most valuable state that may have a child."""
        del rng
        root = tree.root.id
        if tree.expandable(root) and tree.expansions(root) < self.strategies:
            missing = {"score": float(self.strategies - tree.expansions(root))}
            return Choice(root, kind="strategy", reasons=(Reason(root, missing),))
        states = tree.view(self, lambda tree: _Ready(tree, self))
        begun = tree.ended_expansions + tree.in_flight - tree.expansions(root) - len(states.continued)
        if begun >= self.generations or states.accepted or not states.ready:
            return None
        best = [node_id for _, _, node_id in states.ready[:2]]
        reason = why_first(best, partial(_terms, tree), len(states.ready))
        return Choice(best[0], kind="solution" if tree[best[0]].kind == "strategy" else "debug", reasons=(reason,))

    def may_have_a_child(self, tree: Tree, node_id: NodeId) -> bool:
        """Whether a strategy may be implemented, or a solution repaired."""
        most = 1 if tree[node_id].kind == "strategy" else self.debugs
        successful = tree.expansions(node_id) - len(tree.failures(node_id))
        return (
            tree.expandable(node_id)
            and node_id != tree.root.id
            and _generation(tree, node_id) <= self.depth
            and successful < most
            and not _aborted(tree, node_id)
        )


class _Ready(View):
    """A view: the states that may have a child, the best first, and whether a critic accepted one."""

    def __init__(self, tree: Tree, search: Strategies) -> None:
        self._tree = tree
        self._search = search
        self.accepted = False
        self.continued = set[NodeId]()
        """States that continued the line of their parent, so that no generation began there."""
        self.ready: list[tuple[float, int, NodeId]] = []
        """Triples of a negative value, a negative depth and a node."""

    def changed(self, node_id: NodeId) -> None:
        """Note whether the state may have a child now, and whether it was accepted."""
        tree = self._tree
        self.accepted = self.accepted or _accepted(tree, node_id)
        if continues(tree, node_id):
            self.continued.add(node_id)
        place = (-tree[node_id].value, -tree.depth(node_id), node_id)
        at = bisect_left(self.ready, place)
        if self.ready[at : at + 1] == [place]:
            del self.ready[at]
        if self._search.may_have_a_child(tree, node_id):
            self.ready.insert(at, place)


def _generation(tree: Tree, node_id: NodeId) -> int:
    """The generation of a node: 1 for a strategy, 2 for its solution."""
    return sum(not continues(tree, node.id) for node in tree.path(node_id)[1:])


def _accepted(tree: Tree, node_id: NodeId) -> bool:
    """Whether a critic accepts the state. Solved states do not count: the engine verifies them."""
    evaluation = tree[node_id].evaluation
    return evaluation.accepted and not evaluation.solved


def _aborted(tree: Tree, node_id: NodeId) -> bool:
    parent = tree.parent(node_id)
    worse = parent is not None and tree[node_id].value < parent.value
    return worse or tree[node_id].evaluation.aborted


def _terms(tree: Tree, node_id: NodeId) -> dict[str, float]:
    parent = tree.parent(node_id)
    above = {} if parent is None else {"parent": parent.value}
    return {"score": tree[node_id].value, "depth": tree.depth(node_id), **above}
