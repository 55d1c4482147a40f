"""Deeds: what was done on the way to a state and what was seen to come of it, action by action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.actions import Action, Edit, Observation, Search, Shell, View, Write
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.task import Task, load_task
from sandboxes import Workspace

__all__ = ["ActionRecord", "action_record", "action_records", "commands", "task_of"]


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One action."""

    node: NodeId | None
    """The node that it led to; None: it was done by another program, which has no nodes."""
    action: Action
    seen: Observation
    path: str = ""
    """Of what looks at a file or changes it: relative to the workspace, where it lies in it."""

    @property
    def changes_a_file(self) -> bool:
        """Whether it is an edit that was carried out."""
        return isinstance(self.action, (Edit, Write)) and self.seen.ok


def action_records(path: Sequence[Node], task: Task) -> Iterator[ActionRecord]:
    """All that was done on a path and seen to come of it, oldest first."""
    places = _mounts(task.workspace)
    for node in path:
        for step in node.steps:
            for action, seen in zip(step.actions, step.observations, strict=False):
                yield action_record(node.id, action, seen, places)


def action_record(node: NodeId | None, action: Action, seen: Observation, places: Sequence[str]) -> ActionRecord:
    """One action in a workspace that is in one of these places."""
    given = action.path if isinstance(action, (Edit, Write, View, Search)) else ""
    return ActionRecord(node, action, seen, given and _relative(given, places))


def _mounts(workspace: Workspace) -> tuple[str, ...]:
    """Where the workspace may be inside of the sandbox (`sandboxes.Workspace.mount`)."""
    if workspace.mount:
        return (workspace.mount,)
    return (str(workspace.path), "/workspace") if workspace.path else ("/workspace",)


def commands(done: Sequence[ActionRecord]) -> Iterator[str]:
    """The shell commands, as they were given."""
    return (each.action.command for each in done if isinstance(each.action, Shell))


def task_of(run: Run) -> Task:
    """What the run works on; an empty task where the journal does not say."""
    return load_task(run.started.task) if run.started and run.started.task else Task("", "", Workspace(), "")


def _relative(path: str, places: Sequence[str]) -> str:
    """A path as git names it, where it lies in a workspace in one of these places; else as it is."""
    given = PurePosixPath(path)
    place = next((place for place in places if given.is_relative_to(place)), None)
    return str(given.relative_to(place) if place else given)
