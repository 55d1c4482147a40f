"""Task: all that a solver may know about the work."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cache
from shlex import quote
from typing import Any

from agent.errors import JournalError
from agent.parsing import reason
from sandboxes import Provider, Snapshot, Workspace

__all__ = ["Task", "as_begun", "dump_task", "load_task", "settled"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """An issue, the repository it is about, and how to run that repository's tests."""

    id: str
    statement: str
    """The issue, as its author wrote it (untrusted text)."""
    workspace: Workspace
    test_command: str
    """A shell command, run from the root of the workspace."""
    goal_tests: tuple[str, ...] = ()
    """Ids of visible tests that fail now and have to pass. Empty: they are not known, unless `goal_failing`."""
    protected_paths: tuple[str, ...] = ()
    """Glob patterns, relative to the workspace, of files that a patch may not use to change what the tests say.
    They come on top of the patterns that are always protected (`agent.evaluate.guard`)."""
    goal_failing: bool = False
    """Every test that fails in the base state has to pass, where no `goal_tests` are named."""
    base: str = ""
    """The commit that the workspace is at, for the record; may be empty."""
    framework: str = ""
    """The test framework that the command runs, by name (`agent.measure.adapters.registry`). Empty: pytest, or a
    program of which only the exit code is known."""
    instructions: str = ""
    """What the person who runs this wants every model that proposes to heed, in their own words (trusted)."""
    tags: dict[str, str] = field(default_factory=dict)
    """Free facts for reports and exports (repository, licence, source), never shown to a policy."""


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Task)


def dump_task(task: Task) -> dict[str, Any]:
    """A task in the form that a journal keeps."""
    dumped: dict[str, Any] = _adapter().dump_python(task, mode="json")
    return dumped


def load_task(dumped: dict[str, Any]) -> Task:
    """The inverse of `dump_task`.

    Raises:
        agent.errors.JournalError: it is not a task.
    """
    try:
        task: Task = _adapter().validate_python(dumped)
    except ValueError as error:
        raise JournalError(f"the journal describes no task of this version of ramify: {reason(error)}") from error
    return task


def settled(task: Task, provider: Provider, base: Snapshot) -> Task:
    """The task with its workspace where the base state has it, and with the tests run by what a tool calls that would
    hide them (`agent.measure.automation`), which is said. Where the workspace is a folder of the place that was named,
    the tests are run from there all the same, as those do who made such images."""
    from agent.measure.adapters.registry import named_in
    from agent.measure.automation import is_tool, look_through

    named = task.workspace
    if not (named.nested or is_tool(task.test_command)):
        return task
    with provider.at(base) as box:
        place, inner = box.workdir, look_through(box, task.test_command)
    if inner is not None:
        log.warning("%s", inner.said)
        framework = named_in(inner.command) or "pytest"
        task = replace(task, test_command=inner.command, framework=task.framework or framework.replace("pytest", ""))
    if not named.nested:
        return task
    elsewhere = named.mount is not None and place != named.mount
    command = f"cd {quote(named.mount or '')}; {task.test_command}" if elsewhere else task.test_command
    return replace(task, workspace=replace(named, mount=place, nested=False), test_command=command)


def as_begun(task: Task, begun: Task) -> Task:
    """The task with its tests run as they were when its run began, whatever `settled` made of them."""
    return replace(task, test_command=begun.test_command, framework=begun.framework)
