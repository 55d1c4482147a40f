"""Diagnosis: what a failed rollout did, stage by stage, where it went wrong, and what depends on that.

The onset, the chain of what follows from it, and going on from just before it are CodeTracer's (Towards Traceable Agent
States). Law: nothing is attributed that was not checked against the record; the rules are in
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
    """What became of one rollout."""

    source: str
    """The run's directory, or the trajectory's file."""
    path: tuple[NodeId, ...]
    """From the base state to where the rollout ended; empty for a trajectory of another program."""
    ended: str
    """How it ended, for people."""
    stages: tuple[Stage, ...]
    onset: Onset | None
    """None: no recorded fact says where it went wrong."""
    dependents: tuple[int, ...] = ()
    """The numbers of the later steps that depend on the onset."""
    repeats: tuple[int, ...] = ()
    """The numbers of the steps that did what a step before had done, with the same result."""
    go_on: tuple[str, ...] = ()
    """The command that goes on from just before the onset, in words; empty where there is none."""
    no_way: str = ""
    """Why there is none, where there might be one."""

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        stages = [{"name": each.name, "steps": [step.as_json() for step in each.steps]} for each in self.stages]
        onset = self.onset and {**asdict(self.onset), "step": self.onset.step and self.onset.step.as_json()}
        return {**asdict(self), "stages": stages, "onset": onset}


def diagnose(run: Run, node: NodeId | None = None) -> Diagnosis:
    """What went wrong on the way to a node; without one, in the failed rollout that came to the best state.

    Raises:
        agent.errors.UsageError: there is no such node, it is solved, or no rollout failed.
    """
    end = _failed(run) if node is None else node
    require_node(end, len(run.tree))
    path = run.tree.path(end)
    if run.solved(end):
        raise UsageError(f"node {end} is solved: nothing went wrong on the way to it; name another with --node")
    task = task_of(run)
    done = list(action_records(path, task))
    goals = resolve_goals(task, path[0].report)
    note = run.note(run.tree.root.id, "spectrum")
    steps = trace(done)
    onset = find_onset(
        run.tree, list(transitions(path, goals)), goals, Spectrum.from_json(note) if note else None, steps
    )
    ended = f"at node {end}, worth {path[-1].value:.3g}"
    found = _put_together(str(run.journal.directory), tuple(node.id for node in path), ended, done, steps, onset)
    return _with_command(run, found, onset) if onset else found


def diagnose_deeds(source: Path, done: Sequence[ActionRecord], ended: str) -> Diagnosis:
    """What went wrong in a rollout of another program, as far as it printed that."""
    steps = trace(done)
    return _put_together(str(source), (), ended, done, steps, find_printed_onset(done, steps))


def _put_together(
    source: str,
    path: tuple[NodeId, ...],
    ended: str,
    done: Sequence[ActionRecord],
    steps: Sequence[TraceStep],
    onset: Onset | None,
) -> Diagnosis:
    after = dependents(steps, onset.step) if onset and onset.step else ()
    return Diagnosis(source, path, ended, stages(steps), onset, after, tuple(_repeats(done)))


def _repeats(done: Sequence[ActionRecord]) -> Iterator[int]:
    known: set[tuple[Action, str]] = set()
    for number, action_record in enumerate(done, 1):
        key = respelled(action_record.action), action_record.seen.text
        if key in known:
            yield number
        known.add(key)


def _failed(run: Run) -> NodeId:
    """The leaf of the failed rollout with the best state; the oldest among equals."""
    tree = run.tree
    failed = [each for each in run.rollouts() if not run.solved(each.leaf)]
    if not failed:
        raise UsageError(f"{run.journal.directory}: no rollout has failed; there is nothing to diagnose")
    return max(failed, key=lambda each: (tree[each.best].value, -each.leaf)).leaf


def _with_command(run: Run, found: Diagnosis, onset: Onset) -> Diagnosis:
    """With `ramify fork` at the state before the onset, or the nearest above it that can be expanded."""
    if run.over:
        return replace(found, no_way="the run is solved; nothing is searched in it any more")
    start = _before(run.tree, onset.node)
    if start is None:
        return replace(found, no_way="no state before the onset can be expanded any more")
    what = f"step {onset.step.number} ({onset.step.what}) " if onset.step else ""
    hint = f"An earlier attempt went wrong at {what}on the way to node {onset.node}: {onset.why}. Go another way there."
    return replace(found, go_on=("ramify", "fork", found.source, str(start), "--hint", hint))


def _before(tree: Tree, node: NodeId | None) -> NodeId | None:
    above = tree.path(node)[:-1] if node is not None else ()
    return next((each.id for each in reversed(above) if tree.expandable(each.id)), None)
