"""Checks that a task and settings are those that a run began with, so that they can continue the run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agent.config import restore
from agent.counting import shown
from agent.errors import UsageError
from agent.measure.automation import is_tool
from agent.recipes import flattened
from agent.run.events import Started
from agent.run.paths import STORE, is_run, refusal
from agent.run.run import Run
from agent.settings import OPERATIONAL, Settings
from agent.task import Task, load_task
from sandboxes import SandboxError
from sandboxes.git.foreign import locate, opened

_CHANGEABLE = OPERATIONAL | {"budget": True, "workers": True, "instructions": True}
"""Settings that another session of a run may change: what it may spend, and how fast and how carefully it works.
Instructions are among them because they are compared as part of the task."""
SHOWN = 80
"""How many characters of a value a message shows."""


def with_commit(task: Task) -> Task:
    """Return the task with the commit of its checkout as its base, unless the task has a base or git knows no commit.
    If tracked files differ from the commit, a digest of their names, sizes and times is appended."""
    if task.base or task.workspace.path is None:
        return task
    try:
        if (found := locate(task.workspace.path)) is None:
            return task
        with opened(found) as view:
            return replace(task, base=view.version())
    except (SandboxError, OSError, ValueError):  # a damaged journal has a path with a null character
        return task


def require_same(started: Started, task: Task, settings: Settings, directory: Path) -> None:
    """Check that a run began with this task, and with these settings as far as they matter.

    Raises:
        agent.errors.UsageError: it began with others; the message names the differences.
        agent.errors.ConfigError: its settings were written by a version that knew other settings.
    """
    if differences := _differences(started, task, settings):
        raise UsageError(
            f"{directory} holds a run that began with another task or other settings: {'; '.join(differences)}. "
            f"Continue that run with `ramify resume {directory}`, or name another directory"
        )


def forget_refused(directory: Path, task: Task, settings: Settings) -> None:
    """Remove a run that an error ended before its base state was measured, if it began with another task or other
    settings, so that the corrected task can use its directory."""
    if not is_run(directory) or refusal(directory) is None:
        return
    with Run.open(directory) as run:
        other = run.started is not None and run.started.task and _differences(run.started, task, settings)
    if other:
        shutil.rmtree(directory / STORE, ignore_errors=True)
        (directory / "journal.jsonl").unlink()


def _differences(started: Started, task: Task, settings: Settings) -> list[str]:
    return [*_of_tasks(load_task(started.task), task), *_of_settings(started, settings)]


def _of_tasks(old: Task, new: Task) -> Iterator[str]:
    names = ["id", "statement", "goal_tests", "protected_paths", "instructions"]
    names += [] if new.goal_tests else ["goal_failing"]  # earlier versions set it for named tests, without an effect
    # `agent.task.resolve_task` replaces such a command
    replaced = new.workspace.nested or is_tool(new.test_command)
    yield from _of_fields(old, new, names if replaced else [*names, "test_command"])
    if old.base and new.base and old.base != new.base:
        yield _difference("the commit of the checkout", old.base, new.base)
    yield from _of_fields(old.workspace, new.workspace, ["image", "environment", "setup", "env"], "workspace.")
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


def _of_fields(old: object, new: object, names: list[str], prefix: str = "") -> Iterator[str]:
    for name in names:
        if (before := getattr(old, name)) != (now := getattr(new, name)):
            yield _difference(prefix + name, before, now)


def _difference(name: str, old: object, new: object) -> str:
    """Describe two values; long texts are shown from shortly before the place where they begin to differ."""
    if isinstance(old, str) and isinstance(new, str):
        pairs = enumerate(zip(old, new, strict=False))
        same = next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))
        if same > SHOWN // 2:
            begin = same - SHOWN // 4
            old, new = f"...{old[begin:]}", f"...{new[begin:]}"
    return f"{name} {shown(old, SHOWN)}, now {shown(new, SHOWN)}"
