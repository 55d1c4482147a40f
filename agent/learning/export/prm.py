"""Rows for process rewards: each step with the mean outcome of the leaves below it, and their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.learning.export import Row
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import Turns
from agent.learning.export.weaving import whole
from agent.run.credit import OutcomeKind, node_credit, outcome
from agent.run.run import Run


@dataclass(frozen=True, slots=True)
class Prm:
    """One row for each measured state. `prompt` is the prompt of its first answer, `completion` everything from there
    to the state, tool results included; `value`, in [0, 1], is the regression target.

    The mean is unbiased only if the policy alone drew the leaves: a search that continues from good states makes more
    leaves there.
    """

    outcome: OutcomeKind = "solved"
    """What is averaged over the leaves: whether they are solved, or their value."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, credit = Turns(run), node_credit(run.tree, outcome(run, self.outcome))
        for node in run.tree:
            if taken := turns.of(node.id):
                earned, visits = credit[node.id], run.tree.visits(node.id)
                yield {
                    "prompt": list(taken[0].prompt),
                    "completion": whole(taken),
                    "tools": list(taken[0].tools),
                    "value": earned.value,
                    "leaves": earned.leaves,
                    "solved": earned.solved,
                    "visits": visits,
                    "q": run.tree.value_sum(node.id) / visits,
                    "own": node.value,
                    "depth": run.tree.depth(node.id),
                    "provenance": provenance(run, node.id, taken),
                }
