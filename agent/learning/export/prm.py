"""Rows for process rewards: each step with the mean outcome below it, and of how many leaves that is the mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.learning.export import Row
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import Turns
from agent.learning.export.weaving import whole
from agent.run.credit import Outcome, outcome, require_outcome, worths
from agent.run.run import Run

__all__ = ["Prm"]


@dataclass(frozen=True, slots=True)
class Prm:
    """One row a measured state. `prompt` is what its first answer was given to, `completion` all that was said from
    there to the state, results of tools included; `value`, in [0, 1], is the target of a regression.

    That mean is unbiased only where the leaves were drawn by the policy alone: a search that goes on from good states
    makes more leaves there.
    """

    outcome: Outcome = "solved"
    """What is averaged over the leaves: solved or not, or their value."""

    def __post_init__(self) -> None:
        require_outcome(self.outcome)

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, below = Turns(run), worths(run.tree, outcome(run, self.outcome))
        for node in run.tree:
            if taken := turns.of(node.id):
                worth, visits = below[node.id], run.tree.visits(node.id)
                yield {
                    "prompt": list(taken[0].prompt),
                    "completion": whole(taken),
                    "tools": list(taken[0].tools),
                    "value": worth.value,
                    "leaves": worth.leaves,
                    "solved": worth.solved,
                    "visits": visits,
                    "q": run.tree.value_sum(node.id) / visits,
                    "own": node.value,
                    "depth": run.tree.depth(node.id),
                    "provenance": provenance(run, node.id, taken, others=[n.id for n in run.tree.path(node.id)]),
                }
