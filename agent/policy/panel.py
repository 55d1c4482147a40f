"""A panel: several policies on one tree, and the choice of the policy that proposes at a node."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random

from agent.policy import Policy
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View


class PolicyStats(View):
    """A view of the tree: how many states each policy proposed, and their values, in all and as children of a node."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._next = 0
        self.count: Counter[tuple[NodeId | None, str]] = Counter()
        """Number of states by parent (None: in the whole tree) and policy."""
        self.value_sum: defaultdict[tuple[NodeId | None, str], float] = defaultdict(float)
        """Sum of their values, by the same keys."""

    def changed(self, node_id: NodeId) -> None:
        """Count the new nodes."""
        while self._next <= node_id:
            node = self._tree[self._next]
            for parent in {None, *node.parents[:1]}:
                self.count[parent, node.policy_id] += 1
                self.value_sum[parent, node.policy_id] += node.value
            self._next += 1


@dataclass(frozen=True, slots=True)
class Panel:
    """Thompson sampling over the policies at a node. MARS^2 (arXiv 2604.14564) samples like this over pairs of agent
    and node; the formula is Ramify's own.

    For each policy, a number is drawn from `Beta(m * trust + s, (1 - m) * trust + n - s)`. `n` counts the expansions
    that it began at the node, including those in flight or without result. `s` is the sum of its children's values
    there. `m`, in (0, 1), is the mean value of all its states in the tree, with one success and one failure added. The
    policy with the highest number gets the expansion, with all its turns.
    """

    members: tuple[Policy, ...]
    trust: float = 2.0
    """Above 0: the weight of the rest of the tree, in expansions at the node."""

    def __post_init__(self) -> None:
        names = [member.policy_id for member in self.members]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"policies {names}: name at least one, and each only once")
        if not self.trust > 0:
            raise ValueError(f"trust={self.trust}: give a number above 0")

    def member(self, policy_id: str) -> Policy | None:
        """The policy of that name; None if the panel has none."""
        return next((member for member in self.members if member.policy_id == policy_id), None)

    def pick(self, tree: Tree, node_id: NodeId, rng: Random) -> Policy | None:
        """The policy that proposes at the node; None when all are exhausted there."""
        available = [member for member in self.members if not tree.exhausted_for(node_id, member.policy_id)]
        if len(available) < 2:
            return available[0] if available else None
        return max(available, key=lambda member: rng.betavariate(*self.posterior(tree, node_id, member.policy_id)))

    def others_exhausted(self, tree: Tree, node_id: NodeId, policy_id: str) -> bool:
        """Whether all other policies are exhausted at the node."""
        return all(
            tree.exhausted_for(node_id, other.policy_id) for other in self.members if other.policy_id != policy_id
        )

    def posterior(self, tree: Tree, node_id: NodeId, policy_id: str) -> tuple[float, float]:
        """The parameters of the policy's Beta distribution, both above 0."""
        stats = tree.view(PolicyStats, PolicyStats)
        mean = (1 + stats.value_sum.get((None, policy_id), 0.0)) / (2 + stats.count[None, policy_id])
        tried, total = tree.begun(node_id, policy_id=policy_id), stats.value_sum.get((node_id, policy_id), 0.0)
        return self.trust * mean + total, self.trust * (1 - mean) + max(0.0, tried - total)
