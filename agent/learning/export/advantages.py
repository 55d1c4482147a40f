"""Advantages: how much better each step was than others that it can be compared with.

All of them are made of one thing, a step's reward: the mean outcome of the leaves below it, so that every trajectory
through a shared step gives it the same. None is trained on by itself: `agent.learning.export.grpo_tree` says which is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from agent.run.credit import Worth
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree

__all__ = ["Advantages", "Peers", "advantages"]

EPSILON = 1e-4
"""Added to a deviation that is divided by, as TRL's GRPO does."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """Of the step that led to a node."""

    trajectory: float
    """Against all leaves of the task: the mean of what GRPO gives the trajectories through the step, which is the
    outcome less the mean over the deviation (PORTool's trajectory-relative one, arXiv 2510.26020)."""
    fork: float
    """Against the siblings, each counted once: 0 without any (PORTool's fork-relative one)."""
    tree: float
    """Less the parent's value, and less the root's, added: TreeRL's, of the values of TreePS-RAG (arXiv 2601.06922)."""
    anchor: float
    """Against all that was done in the same state and what it led to, states that were known included: the step groups
    of GiGPO. 0 where only one thing was done."""


@dataclass(frozen=True, slots=True)
class Peers:
    """What the steps of a task are compared with: the leaves and the states of all its runs."""

    leaves: list[float] = field(default_factory=list)
    done: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """For each state, by its digest, what each thing that was done there is worth. A tree holds a state once, so that
    all ways into it share a group, and so do the trees of a task that came to it."""

    def look(self, tree: Tree, below: Mapping[NodeId, Worth]) -> None:
        """Take in a run."""
        for node in tree:
            children = [child.id for child in tree.children(node.id)]
            known = [attempt.child for attempt in tree.attempts(node.id) if attempt.known and attempt.child is not None]
            self.done[node.state_hash] += [below[child].value for child in (*children, *known)]
            if not children:
                self.leaves.append(below[node.id].value)


def advantages(
    tree: Tree, below: Mapping[NodeId, Worth], rewards: Mapping[NodeId, float], peers: Peers
) -> dict[NodeId, Advantages]:
    """Of each node but the root. `rewards` are those of the fork-relative advantage."""
    found = dict[NodeId, Advantages]()
    all_, root = _Scale(peers.leaves), below[0].value
    for parent in tree:
        children = [child.id for child in tree.children(parent.id)]
        fork, anchor = _Scale([rewards[child] for child in children]), _Scale(peers.done[parent.state_hash])
        for child in children:
            value = below[child].value
            against_both = (value - below[parent.id].value) + (value - root)
            found[child] = Advantages(all_.of(value), fork.of(rewards[child]), against_both, anchor.of(value))
    return found


class _Scale:
    """What values are compared with: their mean and the sample's deviation."""

    def __init__(self, values: Sequence[float]) -> None:
        varied = len(set(values)) > 1
        self._mean, self._spread = (fmean(values), stdev(values)) if varied else (0.0, 0.0)

    def of(self, value: float) -> float:
        """The value less the mean, over the deviation; 0 where there is none."""
        return (value - self._mean) / (self._spread + EPSILON) if self._spread else 0.0
