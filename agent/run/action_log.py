"""The actions on the way to a state with their observations, one record each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.actions import Action, Edit, Observation, Search, Shell, View, Write
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.task import Task, load_task
from sandboxes import Workspace


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One action and its observation."""

    node: NodeId | None
    """The node that the action led to; None in the trajectory of another program, which has no nodes."""
    action: Action
    seen: Observation
    path: str = ""
    """The file that the action reads or changes, relative to the workspace if it is in it."""

    @property
    def changes_a_file(self) -> bool:
        """Whether the action is an edit that succeeded."""
        return isinstance(self.action, (Edit, Write)) and self.seen.ok


def action_records(path: Sequence[Node], task: Task) -> Iterator[ActionRecord]:
    """The actions of a path, oldest first."""
    places = _mounts(task.workspace)
    for node in path:
        for step in node.steps:
            for action, seen in zip(step.actions, step.observations, strict=False):
                yield action_record(node.id, action, seen, places)


def action_record(node: NodeId | None, action: Action, seen: Observation, places: Sequence[str]) -> ActionRecord:
    """The record of an action; `places` are the paths at which the workspace may be mounted."""
    given = action.path if isinstance(action, (Edit, Write, View, Search)) else ""
    return ActionRecord(node, action, seen, given and _relative(given, places))


def _mounts(workspace: Workspace) -> tuple[str, ...]:
    """The paths at which the workspace may be mounted in the sandbox (`sandboxes.Workspace.mount`)."""
    if workspace.mount:
        return (workspace.mount,)
    return (str(workspace.path), "/workspace") if workspace.path else ("/workspace",)


def commands(records: Sequence[ActionRecord]) -> Iterator[str]:
    """The shell commands among the actions."""
    return (record.action.command for record in records if isinstance(record.action, Shell))


def task_of(run: Run) -> Task:
    """The task of the run; an empty one if the journal does not have it."""
    return load_task(run.started.task) if run.started and run.started.task else Task("", "", Workspace(), "")


def _relative(path: str, places: Sequence[str]) -> str:
    """The path relative to the workspace, if it is below one of these mounts; else unchanged."""
    given = PurePosixPath(path)
    place = next((place for place in places if given.is_relative_to(place)), None)
    return str(given.relative_to(place) if place else given)
