"""Expand the state that looks best, less and less willingly the more often it and its like were expanded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from math import log2
from random import Random

from agent.actions import Effect, effect
from agent.run.tree.choice import Choice
from agent.run.tree.tree import Node, NodeId, Tree
from agent.search.support.ranking import Ranking, exactly, why_first

__all__ = ["TIRED", "BestFirst"]

CLASSES = 4
"""Safe, safe and stale, unsafe, unsafe and stale: nodes of a class wait until none before it can be expanded."""
TIRED = 0.25
"""The fatigue where nearly all proposals help nothing and are many."""


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Highest `value - fatigue * (log2(1 + own) + (1 + depth) * log2(1 + level))` first; `own` are the expansions of
    the node, `level` those of all nodes as deep as it, in flight or ended. Among equals the older node.

    The second term keeps a crowd of half-good states from starving the few above them: by the time the root was
    expanded n times, its children together were about n ** (2/3) times, their children n ** (1/2) times, and better
    values buy a factor, the larger the less the fatigue.

    A state that is no better than the one it came from is *stale*: its edit helped nothing that was measured. Stale
    states wait until no other state can be expanded. So do, behind all others, *unsafe* states: an action on the way
    to them changed something outside the sandbox for good (`Effect.IRREVERSIBLE`), which no other state took part in
    and no patch can repeat. WebOperator puts destructive actions off in the same way.
    """

    fatigue: float = 0.02
    """What a doubling of the expansions takes off a score, at least 0."""
    depth: int = 16
    """Edits a path may have."""

    def __post_init__(self) -> None:
        if self.fatigue < 0 or self.depth < 1:
            raise ValueError(
                f"fatigue={self.fatigue}, depth={self.depth}: give fatigue at least 0 and depth at least 1"
            )

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The expandable node of the highest score in the first class that has one."""
        del rng
        frontier = tree.view(self, lambda tree: _Frontier(tree, self))
        for number in range(CLASSES):
            if best := frontier.best(number):
                return Choice(best[0], reasons=(why_first(best, frontier.terms, frontier.among(number)),))
        return None

    def rested(self, tree: Tree, node_id: NodeId) -> float:
        """The score but for the expansions of the level."""
        return tree[node_id].value - self.fatigue * log2(1 + tree.expansions(node_id))

    def tired(self, depth: int, level: int) -> float:
        """What the expansions of the level take off the score of a node at this depth."""
        return self.fatigue * (1 + depth) * log2(1 + level)


class _Frontier:
    """A view: what may be expanded, by class and depth. What happens on a level shifts all scores of it alike, so that
    their order stays and only the best of each level is compared with those of the others."""

    def __init__(self, tree: Tree, search: BestFirst) -> None:
        self._tree = tree
        self._search = search
        self._classes: list[int] = []
        self._expansions: list[int] = []
        self._level: Counter[int] = Counter()
        self._nodes: defaultdict[tuple[int, int], Ranking] = defaultdict(lambda: Ranking(exactly))
        self._tops = [Ranking(exactly) for _ in range(CLASSES)]
        self._top: dict[tuple[int, int], NodeId] = {}
        self._among = [0] * CLASSES
        self._changed: set[int] = set()

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
        nodes = self._nodes[number, depth]
        self._among[number] -= len(nodes)
        is_open = self._tree.expandable(node_id)
        nodes.put(node_id, (self._search.rested(self._tree, node_id),) if is_open else None)
        self._among[number] += len(nodes)
        self._changed.add(depth)

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing: a subtree does not count here."""

    def best(self, number: int) -> list[NodeId]:
        """The two best of a class, fewer where it has fewer."""
        self._rank_depths()
        best = self._tops[number].best()
        if best:
            depth = self._tree.depth(best[0][1])
            tired = self._search.tired(depth, self._level[depth])
            best += [(rested - tired, node_id) for rested, node_id in self._nodes[number, depth].best()[1:]]
        return [node_id for _, node_id in sorted(best, key=lambda found: (-found[0], found[1]))[:2]]

    def among(self, number: int) -> int:
        """Nodes of a class that may be expanded."""
        return self._among[number]

    def terms(self, node_id: NodeId) -> Mapping[str, float]:
        """What a node's score is made of: `value - own - level`, and its class."""
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
        done = (zip_longest(step.actions, step.observations) for step in node.steps)
        acts = (action for each in done for action, seen in each if seen is None or not seen.refused)
        unsafe = any(self._classes[each] >= 2 for each in node.parents)
        unsafe = unsafe or any(effect(action) is Effect.IRREVERSIBLE for action in acts)
        return 2 * unsafe + stale

    def _rank_depths(self) -> None:
        for depth in self._changed:
            tired = self._search.tired(depth, self._level[depth])
            for number, tops in enumerate(self._tops):
                best = self._nodes[number, depth].best()
                if (old := self._top.pop((number, depth), None)) is not None:
                    tops.put(old, None)
                if best:
                    rested, self._top[number, depth] = best[0]
                    tops.put(best[0][1], (rested - tired,))
        self._changed.clear()
