"""Which states of a frontier to keep: few, good and different."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from agent.run.tree.tree import NodeId, Tree
from agent.search.support.signature import ending, touched

__all__ = ["EXACT", "Frontier", "keep"]

EXACT = 12
"""Up to so many states the best choice is found, beyond it a good one."""


def keep(
    tree: Tree, nodes: Sequence[NodeId], width: int, *, cost: float = 1.0, coverage: float = 1.0
) -> tuple[NodeId, ...]:
    """The best states to go on from, at least one and at most `width`, in the order of `nodes`; none of none.

    Two states are of one cluster when the same tests fail in them in the same way and the same files were edited.
    `Frontier` says what is best.
    """
    if not nodes:
        return ()
    paths = [[above.id for above in tree.path(node)] for node in nodes]
    clusters = [(ending(tree, node), touched(tree, node)) for node in nodes]
    frontier = Frontier.of([tree[node].value for node in nodes], paths, clusters, cost, coverage)
    return tuple(nodes[index] for index in frontier.best(width))


@dataclass(frozen=True, slots=True)
class Frontier:
    """The states that may be kept, by position, and the objective of ETS (arXiv 2502.13575).

    worth = share of the reward - cost * share of the nodes + coverage * share of the clusters

    A state keeps every node on its path from the root; those that it shares with another are counted once.
    """

    rewards: tuple[float, ...]
    """Each in [0, 1]; together 1."""
    paths: tuple[int, ...]
    """The nodes that each keeps, as a set of bits."""
    clusters: tuple[int, ...]
    """The cluster of each, as one bit."""
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
        """From values of 0 or more; where all are 0 they count as equal."""
        total = sum(values)
        rewards = tuple(value / total if total else 1 / len(values) for value in values)
        nodes, kinds = dict[Hashable, int](), dict[Hashable, int]()
        kept = tuple(sum(1 << nodes.setdefault(node, len(nodes)) for node in path) for path in paths)
        found = tuple(1 << kinds.setdefault(cluster, len(kinds)) for cluster in clusters)
        return cls(rewards, kept, found, cost / len(nodes), coverage / len(kinds))

    def best(self, width: int) -> tuple[int, ...]:
        """The positions to keep, exactly the best ones up to EXACT states. Beyond, the better of two choices; it lacks
        at most the cost of the inner nodes of `ignoring_paths`, those that it keeps for the sake of others."""
        if len(self.rewards) <= EXACT:
            return self._exactly(width)
        return max(self.greedily(width), self.ignoring_paths(width), key=self.worth)

    def worth(self, chosen: Iterable[int]) -> float:
        """The objective."""
        reward, nodes, found = 0.0, 0, 0
        for index in chosen:
            reward, nodes, found = reward + self.rewards[index], nodes | self.paths[index], found | self.clusters[index]
        return reward - self.node_cost * nodes.bit_count() + self.cluster_gain * found.bit_count()

    def greedily(self, width: int) -> tuple[int, ...]:
        """Add the state that gains most, until none gains."""
        chosen: list[int] = []
        rest = set(range(len(self.rewards)))
        while rest and len(chosen) < width:
            worth, index = max((self.worth([*chosen, i]), -i) for i in rest)
            if chosen and worth <= self.worth(chosen):
                break
            chosen.append(-index)
            rest.remove(-index)
        return tuple(sorted(chosen))

    def ignoring_paths(self, width: int) -> tuple[int, ...]:
        """The best choice if every state cost one node and no more."""
        ranked = sorted(range(len(self.rewards)), key=lambda i: (-self.rewards[i], i))
        gains, found = dict[int, float](), 0
        for index in ranked:
            gains[index] = self.rewards[index] - self.node_cost
            gains[index] += 0.0 if found & self.clusters[index] else self.cluster_gain
            found |= self.clusters[index]
        best, *others = sorted(ranked, key=lambda i: -gains[i])[:width]
        return tuple(sorted([best, *(i for i in others if gains[i] > 0)]))

    def _exactly(self, width: int) -> tuple[int, ...]:
        every = range(len(self.rewards))
        return max((c for size in range(1, width + 1) for c in combinations(every, size)), key=self.worth)
