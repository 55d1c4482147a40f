"""Diagnosis: what a failed rollout did, stage by stage, where it went wrong, and what depends on that step.

From CodeTracer (Towards Traceable Agent States): the onset, the chain of steps that depend on it, and continuing from
just before it. Invariant: every attribution is checked against the record; the rules are in
`agent.analysis.diagnosis.onset`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent.actions import Action
from agent.actions.canonical import respelled
from agent.analysis.diagnosis.chain import dependents
from agent.analysis.diagnosis.onset import Onset, find_onset
from agent.analysis.diagnosis.printed import find_printed_onset
from agent.analysis.diagnosis.steps import Stage, TraceStep, stages, trace
from agent.errors import UsageError
from agent.evaluate.goal_tests import resolve_goals
from agent.evaluate.transitions import transitions
from agent.measure.probing.spectrum import Spectrum
from agent.run.action_log import ActionRecord, action_records, task_of
from agent.run.commands import require_node
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree

__all__ = ["Diagnosis", "diagnose", "diagnose_deeds"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of one rollout."""

    source: str
    """The run's directory, or the trajectory's file."""
    path: tuple[NodeId, ...]
    """From the root to the node where the rollout ended; empty for a trajectory of another program."""
    ended: str
    """How it ended, for people."""
    stages: tuple[Stage, ...]
    onset: Onset | None
    """None: no recorded fact says where it went wrong."""
    dependents: tuple[int, ...] = ()
    """The numbers of the later steps that depend on the onset."""
    repeats: tuple[int, ...] = ()
    """The numbers of the steps that repeated an earlier step with the same result."""
    go_on: tuple[str, ...] = ()
    """The words of the command that continues from just before the onset; empty if there is no such command."""
    no_way: str = ""
    """Why a run with an onset has no such command."""

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        stages = [{"name": stage.name, "steps": [step.as_json() for step in stage.steps]} for stage in self.stages]
        onset = self.onset and {**asdict(self.onset), "step": self.onset.step and self.onset.step.as_json()}
        return {**asdict(self), "stages": stages, "onset": onset}


def diagnose(run: Run, node: NodeId | None = None) -> Diagnosis:
    """What went wrong on the way to a node; by default, in the failed rollout with the best state.

    Raises:
        agent.errors.UsageError: there is no such node, it is solved, or no rollout failed.
    """
    end = _failed(run) if node is None else node
    require_node(end, len(run.tree))
    path = run.tree.path(end)
    if run.solved(end):
        raise UsageError(f"state {end} is solved: nothing went wrong on the way to it; name another with --state")
    task = task_of(run)
    records = list(action_records(path, task))
    goals = resolve_goals(task, path[0].report)
    note = run.note(run.tree.root.id, "spectrum")
    steps = trace(records)
    onset = find_onset(
        run.tree, list(transitions(path, goals)), goals, Spectrum.from_json(note) if note else None, steps
    )
    ended = f"at state {end}, worth {path[-1].value:.3g}"
    diagnosis = _diagnosis(str(run.journal.directory), tuple(node.id for node in path), ended, records, steps, onset)
    return _with_command(run, diagnosis, onset) if onset else diagnosis


def diagnose_deeds(source: Path, done: Sequence[ActionRecord], ended: str) -> Diagnosis:
    """What went wrong in a rollout of another program, as far as its output shows."""
    steps = trace(done)
    return _diagnosis(str(source), (), ended, done, steps, find_printed_onset(done, steps))


def _diagnosis(
    source: str,
    path: tuple[NodeId, ...],
    ended: str,
    records: Sequence[ActionRecord],
    steps: Sequence[TraceStep],
    onset: Onset | None,
) -> Diagnosis:
    after = dependents(steps, onset.step) if onset and onset.step else ()
    return Diagnosis(source, path, ended, stages(steps), onset, after, tuple(_repeats(records)))


def _repeats(records: Sequence[ActionRecord]) -> Iterator[int]:
    earlier: set[tuple[Action, str]] = set()
    for number, record in enumerate(records, 1):
        key = respelled(record.action), record.seen.text
        if key in earlier:
            yield number
        earlier.add(key)


def _failed(run: Run) -> NodeId:
    """The leaf of the failed rollout with the best state; the oldest of several."""
    tree = run.tree
    failed = [rollout for rollout in run.rollouts() if not run.solved(rollout.leaf)]
    if not failed:
        raise UsageError(f"{run.journal.directory}: no rollout has failed; there is nothing to diagnose")
    return max(failed, key=lambda rollout: (tree[rollout.best].value, -rollout.leaf)).leaf


def _with_command(run: Run, diagnosis: Diagnosis, onset: Onset) -> Diagnosis:
    """The diagnosis with a `ramify fork` command for the nearest state before the onset that can be expanded."""
    if run.finished:
        return replace(diagnosis, no_way="the run is solved, and its search is over")
    start = _before(run.tree, onset.node)
    if start is None:
        return replace(diagnosis, no_way="no state before the onset can be expanded any more")
    what = f"step {onset.step.number} ({onset.step.what}) " if onset.step else ""
    place = f"{what}on the way to state {onset.node}"
    hint = f"An earlier attempt went wrong at {place}: {onset.why}. Go another way there."
    return replace(diagnosis, go_on=("ramify", "fork", diagnosis.source, str(start), "--hint", hint))


def _before(tree: Tree, node: NodeId | None) -> NodeId | None:
    ancestors = tree.path(node)[:-1] if node is not None else ()
    return next((above.id for above in reversed(ancestors) if tree.expandable(above.id)), None)
