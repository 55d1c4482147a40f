"""Record: the journal's facts about one rollout, collected once for its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.evaluate.goal_tests import resolve_goals
from agent.evaluate.transitions import Transition, transitions
from agent.measure.diffs import FilePatch, parse
from agent.measure.probing.spectrum import Spectrum
from agent.measure.protection import Protection, protect
from agent.run.action_log import ActionRecord, action_records, task_of
from agent.run.eviction import kept_patch
from agent.run.grade import declared
from agent.run.rollouts import Rollout
from agent.run.run import Run
from agent.run.tree.node import Node
from sandboxes import Provider


@dataclass(frozen=True, slots=True)
class Record:
    """A rollout's facts."""

    rollout: Rollout
    path: tuple[Node, ...]
    goals: tuple[str, ...]
    """The tests that have to pass."""
    action_records: tuple[ActionRecord, ...]
    transitions: tuple[Transition, ...]
    """A transition for each node below the root."""
    patch_blob: str
    """The best state's patch; empty if neither the journal nor a sandbox has it."""
    patch: tuple[FilePatch, ...]
    spectrum: Spectrum | None
    """The lines that the tests execute in the root state, if they were traced and there is a patch to compare with."""
    failures: tuple[str, ...]
    """Why expansions of the leaf failed."""
    verdict: Mapping[str, Any]
    """The verification of the best state (`agent.evaluate.verification.Verdict.to_note`); empty if there was none."""
    protection: Protection
    """The rule for which paths decide the test results."""

    @property
    def declared(self) -> Mapping[str, str]:
        """The tests that fail with the best state's patch and that its `submit` says contradict the issue, each with
        the reason."""
        return declared(self.best.submission, self.best.report.failures)

    @property
    def best(self) -> Node:
        """The state whose patch is offered."""
        return next(node for node in self.path if node.id == self.rollout.best)


def record(run: Run, provider: Provider | None, rollout: Rollout) -> Record:
    """Collect the record. Without a provider, the patch is read from the journal if it is there, and nothing is
    written.

    Raises:
        sandboxes.SandboxError: the best state is gone, and its patch was not kept.
    """
    path, task = run.tree.path(rollout.leaf), task_of(run)
    blob, patch = _patch(run, provider, run.tree[rollout.best])
    spectrum = run.note(run.tree.root.id, "spectrum")
    goals = resolve_goals(task, path[0].report)
    return Record(
        rollout,
        path,
        goals,
        tuple(action_records(path, task)),
        tuple(transitions(path, goals)),
        blob,
        tuple(parse(patch)),
        Spectrum.from_json(spectrum) if spectrum and patch else None,
        run.tree.failures(rollout.leaf),
        run.verdict(rollout.best) or {},
        protect(task, path[0].report),
    )


def _patch(run: Run, provider: Provider | None, node: Node) -> tuple[str, bytes]:
    """Return the blob of a state's patch against the base state, and the patch."""
    if blob := kept_patch(run, node.id):
        return blob, run.journal.get_blob(blob)
    if provider is None:
        return "", b""
    patch = provider.diff(run.tree.root.snapshot, node.snapshot)
    return run.journal.put_blob(patch), patch
