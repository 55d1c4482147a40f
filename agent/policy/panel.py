"""A panel: several policies on one tree, and which of them is asked at a node."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random

from agent.policy import Policy
from agent.run.tree.tree import NodeId, Tree

__all__ = ["Panel", "Standing"]


class Standing:
    """What the states that each policy proposed were worth: in the whole tree, and below each node. A view."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._seen = 0
        self.count: Counter[tuple[NodeId | None, str]] = Counter()
        """States by the node that they were proposed at (None: at any) and by the policy."""
        self.worth: defaultdict[tuple[NodeId | None, str], float] = defaultdict(float)
        """Sum of their values; the same keys."""

    def changed(self, node_id: NodeId) -> None:
        """Count the nodes that are new."""
        while self._seen <= node_id:
            node = self._tree[self._seen]
            for where in {None, *node.parents[:1]}:
                self.count[where, node.policy_id] += 1
                self.worth[where, node.policy_id] += node.value
            self._seen += 1

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing that is counted over subtrees matters here."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Thompson sampling over the policies at a node. MARS^2 (arXiv 2604.14564) samples so over pairs of agent and node;
    the formula is our own.

    Of each policy a number is drawn from `Beta(m * trust + s, (1 - m) * trust + n - s)`: `n` are the expansions that it
    began at the node, in flight and fruitless ones too, `s` is the sum of its children's values there, and `m`, in
    (0, 1), is the mean value of all that it proposed in the tree, with one success and one failure added. The highest
    number takes the expansion, with all its turns.
    """

    members: tuple[Policy, ...]
    trust: float = 2.0
    """Above 0: how many expansions at the node the rest of the tree counts for."""

    def __post_init__(self) -> None:
        names = [member.policy_id for member in self.members]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"policies {names}: name at least one, and each only once")
        if not self.trust > 0:
            raise ValueError(f"trust={self.trust}: give a number above 0")

    def member(self, policy_id: str) -> Policy | None:
        """The policy of that name, if there is one."""
        return next((member for member in self.members if member.policy_id == policy_id), None)

    def pick(self, tree: Tree, node_id: NodeId, rng: Random) -> Policy | None:
        """Who proposes at the node; None when nobody has anything left."""
        willing = [member for member in self.members if not tree.left(node_id, member.policy_id)]
        if len(willing) < 2:
            return willing[0] if willing else None
        return max(willing, key=lambda member: rng.betavariate(*self.posterior(tree, node_id, member.policy_id)))

    def alone(self, tree: Tree, node_id: NodeId, policy_id: str) -> bool:
        """Whether no other policy has anything left to propose at the node."""
        return all(tree.left(node_id, each.policy_id) for each in self.members if each.policy_id != policy_id)

    def posterior(self, tree: Tree, node_id: NodeId, policy_id: str) -> tuple[float, float]:
        """Both above 0."""
        known = tree.view(Standing, Standing)
        mean = (1 + known.worth.get((None, policy_id), 0.0)) / (2 + known.count[None, policy_id])
        tried, worth = tree.begun(node_id, policy_id=policy_id), known.worth.get((node_id, policy_id), 0.0)
        return self.trust * mean + worth, self.trust * (1 - mean) + max(0.0, tried - worth)
