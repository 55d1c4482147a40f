"""Rows of whole rollouts, including failed ones: the conversation, the patch, and whether it solved the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.learning.export import Row, skipped
from agent.learning.export.provenance import origin, provenance
from agent.learning.export.turns import MERGE, Turns, is_merge
from agent.run.run import Run
from agent.run.tree.node import NodeId


@dataclass(frozen=True, slots=True)
class Trajectories:
    """One row for each leaf, with the columns of public SWE trajectory sets. `messages` is the last answer with its
    prompt and results, `steps` the measurements on the path, `model_patch` the leaf's patch if it was verified or
    summarised, else null."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, facts = Turns(run), origin(run)
        for rollout in run.rollouts():
            if is_merge(run.tree, rollout.leaf):
                yield skipped(MERGE)
            elif taken := turns.path(rollout.leaf):
                leaf = run.tree[rollout.leaf]
                yield {
                    "trajectory_id": f"{facts['run']}/{leaf.id}",
                    "instance_id": facts["task"],
                    "repo": facts["repository"],
                    "license": facts["license"],
                    "messages": list(taken[-1].conversation),
                    "tools": list(taken[-1].tools),
                    "model_patch": _patch(run, leaf.id),
                    "resolved": run.solved(leaf.id),
                    "value": leaf.value,
                    "round": rollout.round,
                    "steps": [
                        {"node": n, "value": run.tree[n].value, "label": run.tree[n].label} for n in rollout.path
                    ],
                    "provenance": provenance(run, leaf.id, taken),
                }


def _patch(run: Run, leaf: NodeId) -> str | None:
    blobs = [(run.verdict(leaf) or {}).get("patch")]
    blobs += [summary.patch_blob for (node, _), summary in run.summaries.items() if node == leaf]
    name = next(filter(None, blobs), None)
    return run.journal.get_blob(name).decode(errors="replace") if name else None
