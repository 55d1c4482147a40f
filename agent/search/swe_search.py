"""SWE-Search's selection: all expandable nodes compete by a sum of bonuses and penalties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from random import Random

from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.support.options import require_at_least
from agent.search.support.ranking import Ranking, why_first

BONUS = 50.0
"""The bonus of a leaf with a high reward, the score to which an unlucky leaf below a good parent is raised, and the
penalty of a finished path."""
HIGH, VERY_HIGH, LOW, FULL = 50.0, 75.0, 0.0, 100.0
"""Rewards."""
BAD_CHILD = 5.0
"""Weight of the distance to a bad only child."""
GOOD_CHILD = 5.0
"""Penalty for a child with a very high reward."""
FRUITLESS = 25.0
"""Penalty for expansions without a child, times their number squared."""


@dataclass(frozen=True, slots=True)
class SweSearch:
    """The node with the highest sum of `terms` first, the older node among equals.

    These are the terms and the constants of the code of SWE-Search (arXiv 2410.20285; `moatless-tree-search`,
    `selector/selector.py`, `uct_score`). Rewards there are in [-100, 100]: a value v is a reward of `200 v - 100`. Its
    duplicates correspond to all expansions without a child here: transpositions, failures, and work in flight, so that
    workers spread out. Terms that need data of its own agent are omitted: expected corrections, repeated kinds of
    actions, and the similarity of edits.

    The exploration term is at most about 2 on that scale: with the published constants this is close to best reward
    first.
    """

    exploration: float = 1.0
    """Weight of exploration, at least 0."""
    depth_weight: float = 0.8
    """Penalty for the depth, times its square root, at least 0."""
    depth_bonus: float = 0.0
    """Bonus of the root, times `exp(depth_weight)`."""
    children: int = 5
    """Maximum number of expansions of a node."""
    depth: int = 32
    """Maximum number of edits on a path."""

    def __post_init__(self) -> None:
        require_at_least(self, exploration=0, depth_weight=0, children=1, depth=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the node with the highest score."""
        del rng
        ranking = tree.view(self, lambda tree: _Candidates(tree, self)).ranking()
        best = [node_id for _, node_id in ranking.best()]
        if not best:
            return None
        reason = why_first(best, lambda n: {"score": self.score(tree, n), **self.terms(tree, n)}, len(ranking))
        return Choice(best[0], reasons=(reason,))

    def score(self, tree: Tree, node_id: NodeId) -> float:
        """The sum of the terms."""
        return sum(self.terms(tree, node_id).values())

    def terms(self, tree: Tree, node_id: NodeId) -> Mapping[str, float]:
        """The bonuses (above 0) and penalties (below 0) of a node, by name."""
        own, depth, children = _reward(tree[node_id].value), tree.depth(node_id), tree.children(node_id)
        rewards = [_reward(child.value) for child in children]
        parent = tree.parent(node_id)
        of_parent = LOW if parent is None else _reward(parent.value)
        finished = depth > 0 and any(_reward(tree.value_max(child.id)) >= FULL for child in children)
        lonely = own >= HIGH and len(rewards) == 1 and rewards[0] <= LOW
        unlucky = not rewards and own <= LOW and of_parent > HIGH
        return {
            "exploitation": own,
            "exploration": self.exploration * _exploration(tree, node_id),
            "depth_bonus": 0.0 if depth else self.depth_bonus * exp(self.depth_weight),
            "depth_penalty": -self.depth_weight * sqrt(depth),
            "high_value_leaf": BONUS if not rewards and own >= HIGH else 0.0,
            "bad_child": BAD_CHILD * (own - rewards[0]) if lonely else 0.0,
            "high_value_child": -GOOD_CHILD if max(rewards, default=LOW) >= VERY_HIGH else 0.0,
            "high_value_parent": BONUS - own if unlucky else 0.0,
            "finished": -BONUS if finished else 0.0,
            "fruitless": -FRUITLESS * (tree.expansions(node_id) - len(children)) ** 2,
        }

    def competes(self, tree: Tree, node_id: NodeId) -> bool:
        """Whether the node may be expanded."""
        has_room = tree.expansions(node_id) < self.children and tree.depth(node_id) < self.depth
        return has_room and tree.expandable(node_id)


def _reward(value: float) -> float:
    """Return the reward for a value, in [-100, 100]."""
    return 200 * value - 100


def _exploration(tree: Tree, node_id: NodeId) -> float:
    """`sqrt(ln N / n)` with the visit counts N of the parent and n of the node, expansions in flight included."""
    parent = tree.parent(node_id)
    above = 1 if parent is None else tree.visits(parent.id) + tree.pending_below(parent.id)
    return sqrt(log(above) / (tree.visits(node_id) + tree.pending_below(node_id)))


class _Candidates:
    """A view: the expandable nodes by score."""

    def __init__(self, tree: Tree, search: SweSearch) -> None:
        self._tree = tree
        self._search = search
        self._ranking = Ranking()
        self._changed: set[NodeId] = set()

    def changed(self, node_id: NodeId) -> None:
        """Schedule the node, its ancestors and their children, which all use its visit count, for the next ranking."""
        self._changed.add(node_id)

    changed_below = changed

    def ranking(self) -> Ranking:
        """The up-to-date ranking."""
        tree, search = self._tree, self._search
        above = tree.structure.ancestors(self._changed)
        nodes = {node_id for node_id in above if tree.depth(node_id) <= search.depth}
        for node_id in nodes.union(*(self._children(node_id) for node_id in nodes)):
            competes = search.competes(tree, node_id)
            self._ranking.put(node_id, search.score(tree, node_id) if competes else None)
        self._changed.clear()
        return self._ranking

    def _children(self, node_id: NodeId) -> list[NodeId]:
        return [child.id for child in self._tree.children(node_id)]
