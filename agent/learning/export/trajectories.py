"""Rows of whole rollouts, failed ones too: what was said, what it changed, and whether it solved the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.learning.export import Row, refused
from agent.learning.export.provenance import origin, provenance
from agent.learning.export.turns import MERGE, Turns, is_merge
from agent.run.run import Run
from agent.run.tree.node import NodeId

__all__ = ["Trajectories"]


@dataclass(frozen=True, slots=True)
class Trajectories:
    """One row a leaf, with the columns of public SWE trajectory sets. `messages` are as the last answer was given them,
    `steps` what was measured on the way, `model_patch` the leaf's patch where it was verified or summarised, else
    null."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, told = Turns(run), origin(run)
        for rollout in run.rollouts():
            if is_merge(run.tree, rollout.leaf):
                yield refused(MERGE)
            elif taken := turns.path(rollout.leaf):
                leaf = run.tree[rollout.leaf]
                yield {
                    "trajectory_id": f"{told['run']}/{leaf.id}",
                    "instance_id": told["task"],
                    "repo": told["repository"],
                    "license": told["license"],
                    "messages": list(taken[-1].told),
                    "tools": list(taken[-1].tools),
                    "model_patch": _patch(run, leaf.id),
                    "resolved": run.solved(leaf.id),
                    "value": leaf.value,
                    "round": rollout.round,
                    "steps": [
                        {"node": n, "value": run.tree[n].value, "label": run.tree[n].label} for n in rollout.path
                    ],
                    "provenance": provenance(run, leaf.id, taken, others=rollout.path),
                }


def _patch(run: Run, leaf: NodeId) -> str | None:
    named = [(run.verdict(leaf) or {}).get("patch")]
    named += [summary.patch_blob for (of, _), summary in run.summaries.items() if of == leaf]
    name = next(filter(None, named), None)
    return run.journal.get_blob(name).decode(errors="replace") if name else None
