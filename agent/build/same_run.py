"""Whether a task and settings are those that a run began with, so that the run may be continued with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent.config import restore
from agent.counting import shown
from agent.errors import UsageError
from agent.measure.automation import is_tool
from agent.recipes import flattened
from agent.run.events import Started
from agent.settings import OPERATIONAL, Settings
from agent.task import Task, load_task

_CHANGEABLE = OPERATIONAL | {"budget": True, "workers": True, "instructions": True}
"""Settings that another session of a run may change: what it may spend, and how fast and how carefully it works.
Instructions are compared as the task's."""
SHOWN = 80
"""Characters of a value that a message shows."""


def require_same(started: Started, task: Task, settings: Settings, directory: Path) -> None:
    """Check that a run began with this task, and with these settings as far as they matter.

    Raises:
        agent.errors.UsageError: it began with others; the message names them.
        agent.errors.ConfigError: its settings were written by a version that knew other settings.
    """
    differences = [*_of_tasks(load_task(started.task), task), *_of_settings(started, settings)]
    if differences:
        raise UsageError(
            f"{directory} holds a run that began with another task or other settings: {'; '.join(differences)}. "
            f"Continue that run with `ramify resume {directory}`, or name another directory"
        )


def _of_tasks(old: Task, new: Task) -> Iterator[str]:
    names = ["id", "statement", "goal_tests", "protected_paths", "instructions"]
    names += [] if new.goal_tests else ["goal_failing"]  # earlier versions set it for named tests, without an effect
    replaced = new.workspace.nested or is_tool(new.test_command)  # by `agent.task.finished`
    yield from _differences(old, new, names if replaced else [*names, "test_command"])
    if old.base and new.base:
        yield from _differences(old, new, ["base"])
    yield from _differences(old.workspace, new.workspace, ["image", "environment", "setup", "env"], "workspace.")
    same_commit = old.base and old.base == new.base
    places = _place(old.workspace.path), _place(new.workspace.path)
    if not same_commit and places[0] != places[1]:
        yield _difference("workspace.path", *places)


def _place(path: Path | None) -> str | None:
    try:
        return str(path.resolve()) if path else None
    except ValueError:  # a damaged journal has a path with a null character
        return str(path)


def _of_settings(started: Started, settings: Settings) -> Iterator[str]:
    if not started.settings:
        return
    both = (restore(started.settings), settings)
    old, new = (flattened(each.model_dump(mode="json", exclude=_CHANGEABLE)) for each in both)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield _difference(key, old.get(key), new.get(key))


def _differences(old: object, new: object, names: list[str], prefix: str = "") -> Iterator[str]:
    for name in names:
        if (before := getattr(old, name)) != (now := getattr(new, name)):
            yield _difference(prefix + name, before, now)


def _difference(name: str, old: object, new: object) -> str:
    return f"{name} {shown(old, SHOWN)}, now {shown(new, SHOWN)}"
