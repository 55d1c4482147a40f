"""Rows for policy gradients over trees: each step once, with its advantage and the components of the advantage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agent.learning.export import Row, Share
from agent.learning.export.accepted import AcceptedPatches
from agent.learning.export.advantages import Advantages, Peers, advantages
from agent.learning.export.provenance import journal_digest, provenance, task_key
from agent.learning.export.turns import Turn, Turns
from agent.learning.export.weaving import whole
from agent.run.action_log import task_of
from agent.run.credit import Credit, OutcomeKind, node_credit, outcome
from agent.run.eviction import kept_patch
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId


@dataclass(frozen=True, slots=True)
class GrpoTree:
    """One row for each measured state. In `completion`, answers are the policy's and tool results the environment's.

    Runs of the same task are one group: their leaves are compared with one another, and so are the steps taken in
    states that several of them reached. `weight` is the number of leaves below the step, hence of trajectories that
    share it: a loss that sums `weight * advantage` over the rows equals that over all trajectories, with shared steps
    trained once.
    """

    credit: Literal["fork", "tree", "anchor"] = "fork"
    """How `advantage` is made. `fork`: `w` times the fork-relative one plus 1 - w times the trajectory-relative one
    (PORTool); `tree`: against the parent and the root; `anchor`: the trajectory-relative one plus w times the one
    within the same state (GiGPO)."""
    w: Share = 0.5
    """The `w` of `fork` and `anchor`; with 0, both are plain GRPO over the trajectories."""
    calls: Annotated[float, Field(ge=0)] = 0.0
    """The weight, in a step's reward among siblings, of the share of turns without a failed call."""
    outcome: OutcomeKind = "solved"
    """What is averaged over the leaves: whether they are solved, or their value."""
    references: str = ""
    """A file of JSON Lines with an `instance_id` and a `patch` that was accepted; a task may have several. A leaf that
    is not right by `outcome` then counts as its similarity to the nearest of them, in [0, 1] (KAT-Coder)."""

    needs_all_runs: ClassVar[bool] = True
    _peers: dict[str, Peers] = field(default_factory=dict, init=False, repr=False)
    """The leaves and states to compare with, by task."""
    _accepted: AcceptedPatches | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.references:
            object.__setattr__(self, "_accepted", AcceptedPatches.read(Path(self.references)))

    def collect(self, run: Run) -> None:
        """Add a run to the group of its task."""
        self._peers.setdefault(task_key(task_of(run)), Peers()).collect(run.tree, self._credit(run))

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run that was added."""
        turns, credit, tree = Turns(run), self._credit(run), run.tree
        rewards = {node.id: credit[node.id].value + self.calls * _unfailed(turns.of(node.id)) for node in tree}
        by_node = advantages(tree, credit, rewards, self._peers[task_key(task_of(run))])
        for node in tree:
            if taken := turns.of(node.id):
                parts = asdict(by_node[node.id])
                parent = tree[node.parents[0]]
                yield {
                    "prompt": list(taken[0].prompt),
                    "completion": whole(taken),
                    "tools": list(taken[0].tools),
                    "advantage": self._blended(by_node[node.id]),
                    **{f"{name}_advantage": value for name, value in parts.items()},
                    "reward": credit[node.id].value,
                    "weight": credit[node.id].leaves,
                    "group": f"{journal_digest(run)[:12]}/{parent.id}",
                    "anchor": parent.state_hash,
                    "provenance": provenance(run, node.id, taken),
                }

    def _credit(self, run: Run) -> dict[NodeId, Credit]:
        by_tests, accepted = outcome(run, self.outcome), self._accepted
        if accepted is None:
            return node_credit(run.tree, by_tests)

        def found(leaf: Node) -> float:
            right = by_tests(leaf)
            if right == 1.0 or not (blob := kept_patch(run, leaf.id)):
                return right
            return max(right, accepted.nearest(task_of(run).id, run.journal.get_blob(blob)))

        return node_credit(run.tree, found)

    def _blended(self, parts: Advantages) -> float:
        if self.credit == "tree":
            return parts.tree
        if self.credit == "anchor":
            return parts.trajectory + self.w * parts.anchor
        return self.w * parts.fork + (1 - self.w) * parts.trajectory


def _unfailed(taken: tuple[Turn, ...]) -> float:
    """The share of turns in which no call failed; 1 without turns."""
    return fmean(not turn.failed for turn in taken) if taken else 1.0
