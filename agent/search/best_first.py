"""Best-first search: expand the best state, with a penalty for expansions of the state and of others at its depth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from math import log2
from random import Random

from agent.actions import Effect, effect
from agent.run.tree.choice import Choice
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.options import require_at_least
from agent.search.support.ranking import Ranking, why_first

CLASSES = 4
"""The number of classes of nodes: safe, stale, unsafe, unsafe and stale. Nodes of a class wait until no node of an
earlier class can be expanded."""
TIRED = 0.25
"""The fatigue for policies that make many proposals, nearly all of them useless."""


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Highest `value - fatigue * (log2(1 + own) + (1 + depth) * log2(1 + level))` first, the older node among equals.
    `own` counts the expansions of the node, `level` those of all nodes at its depth, in flight or ended.

    The second term prevents many mediocre states at one depth from starving the few above them: once the root has
    been expanded n times, its children together have been expanded about n ** (2/3) times, and their children about
    n ** (1/2) times. Better values multiply these numbers; the smaller the fatigue, the larger the factor.

    A state that is no better than its parent is *stale*: its edit improved nothing that was measured. Stale states wait
    until no other state can be expanded. *Unsafe* states wait until all others have been expanded: an action on the
    path to them changed something outside the sandbox irreversibly (`Effect.IRREVERSIBLE`), which other states did not
    share and no patch can repeat. WebOperator defers destructive actions in the same way.
    """

    fatigue: float = 0.02
    """Penalty for each doubling of the expansions, at least 0."""
    depth: int = 16
    """Maximum number of edits on a path."""

    def __post_init__(self) -> None:
        require_at_least(self, fatigue=0, depth=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the expandable node with the highest score in the first class that has one."""
        del rng
        frontier = tree.view(self, lambda tree: _Frontier(tree, self))
        for number in range(CLASSES):
            if best := frontier.best(number):
                return Choice(best[0], reasons=(why_first(best, frontier.terms, frontier.among(number)),))
        return None

    def rested(self, tree: Tree, node_id: NodeId) -> float:
        """The score before the penalty for the level's expansions."""
        return tree[node_id].value - self.fatigue * log2(1 + tree.expansions(node_id))

    def tired(self, depth: int, level: int) -> float:
        """The penalty of a node at this depth for the expansions of its level."""
        return self.fatigue * (1 + depth) * log2(1 + level)


class _Frontier(View):
    """A view: the expandable nodes by class and depth. An expansion shifts all scores of its level by the same amount,
    so their order stays and only the best of each level are compared."""

    def __init__(self, tree: Tree, search: BestFirst) -> None:
        self._tree = tree
        self._search = search
        self._classes: list[int] = []
        self._expansions: list[int] = []
        self._level: Counter[int] = Counter()
        self._nodes = [defaultdict[int, Ranking](Ranking) for _ in range(CLASSES)]

    def changed(self, node_id: NodeId) -> None:
        """Count the node's expansions and rank it among those of its class and depth."""
        if node_id == len(self._classes):
            self._classes.append(self._class(self._tree[node_id]))
            self._expansions.append(0)
        number, depth = self._classes[node_id], self._tree.depth(node_id)
        begun = self._tree.expansions(node_id)
        self._level[depth] += begun - self._expansions[node_id]
        self._expansions[node_id] = begun
        if depth >= self._search.depth:
            return
        is_open = self._tree.expandable(node_id)
        self._nodes[number][depth].put(node_id, self._search.rested(self._tree, node_id) if is_open else None)

    def best(self, number: int) -> list[NodeId]:
        """The best two nodes of a class, or fewer."""
        best = [
            (rested - self._search.tired(depth, self._level[depth]), node_id)
            for depth, nodes in self._nodes[number].items()
            for rested, node_id in nodes.best()
        ]
        return [node_id for _, node_id in sorted(best, key=lambda scored: (-scored[0], scored[1]))[:2]]

    def among(self, number: int) -> int:
        """How many nodes of a class can be expanded."""
        return sum(map(len, self._nodes[number].values()))

    def terms(self, node_id: NodeId) -> Mapping[str, float]:
        """The terms of a node's score, `value - own - level`, and its class."""
        depth, number = self._tree.depth(node_id), self._classes[node_id]
        value, rested = self._tree[node_id].value, self._search.rested(self._tree, node_id)
        tired = self._search.tired(depth, self._level[depth])
        return {
            "score": rested - tired,
            "value": value,
            "own": value - rested,
            "level": tired,
            "stale": number % 2,
            "unsafe": number // 2,
        }

    def _class(self, node: Node) -> int:
        parent = self._tree.parent(node.id)
        stale = parent is not None and node.value <= parent.value
        turns = (zip_longest(step.actions, step.observations) for step in node.steps)
        performed = (action for turn in turns for action, result in turn if result is None or not result.refused)
        unsafe = any(self._classes[parent_id] >= 2 for parent_id in node.parents)
        unsafe = unsafe or any(effect(action) is Effect.IRREVERSIBLE for action in performed)
        return 2 * unsafe + stale
