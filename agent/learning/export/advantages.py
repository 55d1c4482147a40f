"""Advantages: how much better each step was than comparable steps.

All are computed from a step's reward, the mean outcome of the leaves below it, so that all trajectories through a
shared step agree on it. `agent.learning.export.grpo_tree` says which of them is trained on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from agent.run.credit import Credit
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree

EPSILON = 1e-4
"""Added to the deviation before dividing by it, as in TRL's GRPO."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """The advantages of the step that led to a node."""

    trajectory: float
    """Against all leaves of the task: the mean of the GRPO advantages of the trajectories through the step, each being
    the outcome minus the mean, divided by the deviation (PORTool's trajectory-relative advantage, arXiv 2510.26020)."""
    fork: float
    """Against the siblings, each counted once; 0 without siblings (PORTool's fork-relative advantage)."""
    tree: float
    """The gain over the parent's value plus the gain over the root's: TreeRL's, with the values of TreePS-RAG
    (arXiv 2601.06922)."""
    anchor: float
    """Against all steps taken in the same state, including those that led to states already in the tree: the step
    groups of GiGPO. 0 for a single step."""


@dataclass(frozen=True, slots=True)
class Peers:
    """The leaves and states of all runs of a task, for comparing its steps."""

    leaves: list[float] = field(default_factory=list)
    done: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The values of all steps taken in each state, by the state's digest. A tree holds a state once, so all paths to it
    share a group, also across the trees of a task."""

    def collect(self, tree: Tree, credit: Mapping[NodeId, Credit]) -> None:
        """Add a run."""
        for node in tree:
            children = [child.id for child in tree.children(node.id)]
            known = [attempt.child for attempt in tree.attempts(node.id) if attempt.known and attempt.child is not None]
            self.done[node.state_hash] += [credit[child].value for child in (*children, *known)]
            if not children:
                self.leaves.append(credit[node.id].value)


def advantages(
    tree: Tree, credit: Mapping[NodeId, Credit], rewards: Mapping[NodeId, float], peers: Peers
) -> dict[NodeId, Advantages]:
    """The advantages of each node except the root. `rewards` are for the fork-relative advantage."""
    result = dict[NodeId, Advantages]()
    leaves, root = _Scale(peers.leaves), credit[0].value
    for parent in tree:
        children = [child.id for child in tree.children(parent.id)]
        fork, anchor = _Scale([rewards[child] for child in children]), _Scale(peers.done[parent.state_hash])
        for child in children:
            value = credit[child].value
            against_both = (value - credit[parent.id].value) + (value - root)
            result[child] = Advantages(leaves.of(value), fork.of(rewards[child]), against_both, anchor.of(value))
    return result


class _Scale:
    """The mean and the sample deviation of some values."""

    def __init__(self, values: Sequence[float]) -> None:
        varied = len(set(values)) > 1
        self._mean, self._spread = (fmean(values), stdev(values)) if varied else (0.0, 0.0)

    def of(self, value: float) -> float:
        """The value minus the mean, divided by the deviation; 0 without deviation."""
        return (value - self._mean) / (self._spread + EPSILON) if self._spread else 0.0
