"""Pruning a frontier: keep few states that are good and different from each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.support.signature import ending, touched

EXACT = 12
"""Up to this many states the choice is optimal; with more, it is approximate."""


def keep(
    tree: Tree, nodes: Sequence[NodeId], width: int, *, cost: float = 1.0, coverage: float = 1.0
) -> tuple[NodeId, ...]:
    """Return the best states to continue from, at least one and at most `width`, in the order of `nodes`; an empty list
    if `nodes` is empty.

    Two states are in one cluster if the same tests fail in them in the same way and the same files were edited.
    `Frontier` defines the best set.
    """
    if not nodes:
        return ()
    paths = [[above.id for above in tree.path(node)] for node in nodes]
    clusters = [(ending(tree, node), touched(tree, node)) for node in nodes]
    frontier = Frontier.of([tree[node].value for node in nodes], paths, clusters, cost, coverage)
    return tuple(nodes[index] for index in frontier.best(width))


@dataclass(frozen=True, slots=True)
class Frontier:
    """The candidate states, by position, and the objective of ETS (arXiv 2502.13575).

    objective = share of the reward - cost * share of the nodes + coverage * share of the clusters

    A state keeps every node on its path from the root; nodes shared by several kept states count once.
    """

    rewards: tuple[float, ...]
    """Each in [0, 1]; their sum is 1."""
    paths: tuple[int, ...]
    """The nodes that each state keeps, as a bit set."""
    clusters: tuple[int, ...]
    """The cluster of each state, as one bit."""
    node_cost: float
    cluster_gain: float

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        paths: Iterable[Iterable[Hashable]],
        clusters: Iterable[Hashable],
        cost: float,
        coverage: float,
    ) -> Frontier:
        """Build the frontier from values of at least 0; if all are 0, they count as equal."""
        total = sum(values)
        rewards = tuple(value / total if total else 1 / len(values) for value in values)
        nodes, kinds = dict[Hashable, int](), dict[Hashable, int]()
        kept = tuple(sum(1 << nodes.setdefault(node, len(nodes)) for node in path) for path in paths)
        bits = tuple(1 << kinds.setdefault(cluster, len(kinds)) for cluster in clusters)
        return cls(rewards, kept, bits, cost / len(nodes), coverage / len(kinds))

    def best(self, width: int) -> tuple[int, ...]:
        """Return the positions to keep. Up to EXACT states the set is optimal. With more, it is the better of two
        approximations and falls short of the optimum by at most the cost of the inner nodes on the paths of
        `ignoring_paths`."""
        if len(self.rewards) <= EXACT:
            return self._exactly(width)
        return max(self.greedily(width), self.ignoring_paths(width), key=self.objective)

    def objective(self, chosen: Iterable[int]) -> float:
        """Return the objective for these positions."""
        reward, nodes, kinds = 0.0, 0, 0
        for index in chosen:
            reward, nodes, kinds = reward + self.rewards[index], nodes | self.paths[index], kinds | self.clusters[index]
        return reward - self.node_cost * nodes.bit_count() + self.cluster_gain * kinds.bit_count()

    def greedily(self, width: int) -> tuple[int, ...]:
        """Add the state with the highest gain until no state has a gain."""
        chosen: list[int] = []
        rest = set(range(len(self.rewards)))
        while rest and len(chosen) < width:
            best, index = max((self.objective([*chosen, i]), -i) for i in rest)
            if chosen and best <= self.objective(chosen):
                break
            chosen.append(-index)
            rest.remove(-index)
        return tuple(sorted(chosen))

    def ignoring_paths(self, width: int) -> tuple[int, ...]:
        """Return the set that would be best if every state cost exactly one node."""
        ranked = sorted(range(len(self.rewards)), key=lambda i: (-self.rewards[i], i))
        gains, covered = dict[int, float](), 0
        for index in ranked:
            gains[index] = self.rewards[index] - self.node_cost
            gains[index] += 0.0 if covered & self.clusters[index] else self.cluster_gain
            covered |= self.clusters[index]
        best, *others = sorted(ranked, key=lambda i: -gains[i])[:width]
        return tuple(sorted([best, *(i for i in others if gains[i] > 0)]))

    def _exactly(self, width: int) -> tuple[int, ...]:
        every = range(len(self.rewards))
        return max((c for size in range(1, width + 1) for c in combinations(every, size)), key=self.objective)
