"""Beam search: level by level, keeping the few best states of each level."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass
from random import Random

from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.frontier import keep
from agent.search.support.options import require_at_least
from agent.search.support.ranking import why_first


@dataclass(frozen=True, slots=True)
class Beam:
    """The beam of a level is its `width` unfinished nodes of highest value, the older ones among equals. Each is
    expanded `children` times, whatever the results, the better node first. The next level starts when nothing is left
    to expand on this one and nothing is in flight on it.

    With a `cost` or a `coverage`, the beam is the set of at most `width` nodes of the level with the best balance of
    high values, few nodes to keep, and variety (`agent.search.support.frontier`). A node that turns out to have no
    more children keeps its place.
    """

    width: int = 4
    """How many nodes are kept on each level."""
    children: int = 4
    """How many times each node of a beam is expanded."""
    depth: int = 8
    """Maximum number of edits on a path."""
    cost: float = 0.0
    """The penalty for keeping all nodes of the level and above, at least 0. Keeping a fraction of them costs that
    fraction of the penalty; keeping all the values of the level is worth 1."""
    coverage: float = 0.0
    """The bonus for keeping a node of every kind (same failures, same edited files), at least 0. Keeping a fraction of
    the kinds gives that fraction of the bonus."""

    def __post_init__(self) -> None:
        require_at_least(self, width=1, children=1, depth=1, cost=0, coverage=0)

    @property
    def prunes(self) -> bool:
        """Whether the beam depends on more than values."""
        return bool(self.cost or self.coverage)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the best node with expansions left on the shallowest such level; None while the level before it is
        incomplete."""
        del rng
        beams = tree.view(self, lambda tree: _Beams(tree, self))
        for depth in sorted(beams.left):
            level = [node_id for _, node_id in beams.levels[depth]]
            if tree.in_flight > sum(tree.pending_below(node_id) for node_id in level):
                return None
            beam = beams.beam(depth) if self.prunes else level
            left = [node_id for node_id in beam if node_id in beams.left[depth]]
            if left:
                terms = {n: {"score": tree[n].value, "level": depth} for n in left[:2]}
                return Choice(left[0], reasons=(why_first(left, terms.__getitem__, len(left)),))
        return None


class _Beams(View):
    """A view: the beam of each level, and which of its nodes have expansions left."""

    def __init__(self, tree: Tree, search: Beam) -> None:
        self._tree = tree
        self._search = search
        self._nodes = 0
        self.levels: defaultdict[int, list[tuple[float, NodeId]]] = defaultdict(list)
        """By depth: pairs of a negative value and a node; the beam, or the whole level if more than values count."""
        self.left: dict[int, set[NodeId]] = {}
        """By depth: the nodes with expansions left. Levels without any are absent."""
        self._kept: dict[tuple[NodeId, ...], tuple[NodeId, ...]] = {}

    def changed(self, node_id: NodeId) -> None:
        """Let a new node displace the last of its beam; note whether the node has expansions left."""
        node, depth = self._tree[node_id], self._tree.depth(node_id)
        beam, place = self.levels[depth], (-node.value, node_id)
        if node_id == self._nodes:
            self._nodes += 1
            if not node.terminal and depth < self._search.depth:
                insort(beam, place)
            width = len(beam) if self._search.prunes else self._search.width
            for _, out in beam[width:]:
                self._mark(depth, out, left=False)
            del beam[width:]
        if place in beam:
            begun = self._tree.expansions(node_id)
            self._mark(depth, node_id, left=self._tree.expandable(node_id) and begun < self._search.children)

    def beam(self, depth: int) -> tuple[NodeId, ...]:
        """The nodes of a level that are kept, the best first. No node joins a level once the level is searched."""
        nodes, search = tuple(node_id for _, node_id in self.levels[depth]), self._search
        if nodes not in self._kept:
            self._kept[nodes] = keep(self._tree, nodes, search.width, cost=search.cost, coverage=search.coverage)
        return self._kept[nodes]

    def _mark(self, depth: int, node_id: NodeId, *, left: bool) -> None:
        nodes = self.left.pop(depth, set()) - {node_id} | ({node_id} if left else set())
        if nodes:
            self.left[depth] = nodes
