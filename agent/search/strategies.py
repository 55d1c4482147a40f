"""Strategies first, then a solution by each, then its debugging, as far as a critic or the tests see a point in it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.tree import NodeId, Tree
from agent.search.continuing import continues
from agent.search.support.ranking import why_first

__all__ = ["Strategies"]


@dataclass(frozen=True, slots=True)
class Strategies:
    """Typed nodes: the root's children are strategies in words (`kind` "strategy"), a strategy's child carries it out
    ("solution"), and a solution's children repair what is left ("debug").

    A solution, and each repair, is a line of work that continues until it ends (`agent.search.continuing`); it is
    repaired where it came to nothing, or was submitted although a goal test fails. A critic's verdict decides, which is
    recorded as parts of the evaluation, each 1 or 0: `accept` ends the search, `abort` ends the branch; else the state
    is refined. Whatever a critic says, a state that is worth less than its parent ends its branch. Without a critic the
    value alone decides. Among the states that may have a child, the highest value comes first, the deeper node among
    equals, then the older one.

    This is CodeTree's search (arXiv 2411.04329; `llm_agent_guide.py` of SalesforceAIResearch/CodeTree), but for the
    order: CodeTree goes depth first, in the order in which the strategies were proposed.
    """

    strategies: int = 4
    """Strategies to propose, at least 1."""
    debugs: int = 2
    """Children that repair one state, at least 1."""
    depth: int = 3
    """Generations on a path, at least 1: a solution, and the states that repair it one after the other."""
    generations: int = 20
    """Solutions and repairs of the whole search, at least 1; those that fail count."""

    def __post_init__(self) -> None:
        for name in ("strategies", "debugs", "depth", "generations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is too small: give at least 1")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """A strategy while there are too few of them, else a child of the most valuable state that may have one."""
        del rng
        root = tree.root.id
        if tree.expandable(root) and tree.expansions(root) < self.strategies:
            missing = {"score": float(self.strategies - tree.expansions(root))}
            return Choice(root, kind="strategy", reasons=(Reason(root, missing),))
        known = tree.view(self, lambda tree: _Ready(tree, self))
        begun = tree.ended_expansions + tree.in_flight - tree.expansions(root) - len(known.continued)
        if begun >= self.generations or known.accepted or not known.ready:
            return None
        best = [node_id for _, _, node_id in known.ready[:2]]
        reason = why_first(best, partial(_terms, tree), len(known.ready))
        return Choice(best[0], kind="solution" if tree[best[0]].kind == "strategy" else "debug", reasons=(reason,))

    def may_have_a_child(self, tree: Tree, node_id: NodeId) -> bool:
        """Whether a strategy may be carried out, or a solution repaired."""
        most = 1 if tree[node_id].kind == "strategy" else self.debugs
        came_to_something = tree.expansions(node_id) - len(tree.failures(node_id))
        return (
            tree.expandable(node_id)
            and node_id != tree.root.id
            and _generation(tree, node_id) <= self.depth
            and came_to_something < most
            and not _aborted(tree, node_id)
        )


class _Ready:
    """A view: the states that may have a child, in the order in which they come, and whether a critic accepted one."""

    def __init__(self, tree: Tree, search: Strategies) -> None:
        self._tree = tree
        self._search = search
        self.accepted = False
        self.continued = set[NodeId]()
        """States at which a conversation had come further, and no generation began."""
        self.ready: list[tuple[float, int, NodeId]] = []
        """Each with its value and its depth, both negative."""

    def changed(self, node_id: NodeId) -> None:
        """Whether the state is ready now, and whether it was accepted."""
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

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: a subtree does not count here."""


def _generation(tree: Tree, node_id: NodeId) -> int:
    """The strategy's is 1, that of the solution by it 2."""
    return sum(not continues(tree, node.id) for node in tree.path(node_id)[1:])


def _accepted(tree: Tree, node_id: NodeId) -> bool:
    """A critic wants no better one. A solved state is the engine's affair, which verifies it."""
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
