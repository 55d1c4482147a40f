"""Task: everything that a solver may know about the work."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from agent.errors import JournalError, UsageError
from agent.parsing import adapter, reason
from sandboxes import Provider, Snapshot, Workspace

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
    """Ids of visible tests that have to pass. Each has to fail now, unless `goal_failing` is set. Empty: the goal tests
    are unknown, unless `goal_failing` is set."""
    protected_paths: tuple[str, ...] = ()
    """Glob patterns, relative to the workspace, of files that a patch may not use to change the results of the tests,
    besides the patterns that are always protected (`agent.evaluate.guard`)."""
    goal_failing: bool = False
    """Whether the goals are the tests that fail in the base state: those among `goal_tests`, or among all tests if that
    is empty."""
    base: str = ""
    """A name for the state of the workspace; a run is not continued with another state. Empty: the commit of a checkout
    (`agent.build.same_run.with_commit`)."""
    framework: str = ""
    """The test framework that the command runs, by name (`agent.measure.adapters.registry`). Empty: pytest, or a
    program that is judged by its exit code alone."""
    instructions: str = ""
    """The user's own instructions for every model that proposes edits (trusted text)."""
    tags: dict[str, str] = field(default_factory=dict)
    """Further facts for reports and exports (repository, licence, source); never shown to a policy."""

    def __post_init__(self) -> None:
        """Check the types of sequences.

        Raises:
            agent.errors.UsageError: `goal_tests` or `protected_paths` is a string, or `test_command` is not a string.
        """
        if not isinstance(self.test_command, str):
            raise UsageError(f"Task(test_command={self.test_command!r}) is not a string; give a shell command")
        for name in ("goal_tests", "protected_paths"):
            if isinstance(value := getattr(self, name), str):
                raise UsageError(f"Task({name}={value!r}) is one string; give a tuple: ({value!r},)")


def dump_task(task: Task) -> dict[str, Any]:
    """Return a task as JSON, as the journal stores it: with the absolute path of its workspace, since a later session
    may have another working directory."""
    path = task.workspace.path
    absolute = replace(task.workspace, path=path.absolute() if path else None)
    dumped: dict[str, Any] = adapter(Task).dump_python(replace(task, workspace=absolute), mode="json")
    return dumped


def load_task(dumped: dict[str, Any]) -> Task:
    """Return the task that `dump_task` wrote.

    Raises:
        agent.errors.JournalError: it is not a task of this version.
    """
    try:
        task: Task = adapter(Task).validate_python(dumped)
    except ValueError as error:
        raise JournalError(
            f"the journal holds no task that this version of ramify can read: {reason(error)}"
        ) from error
    return task


def resolve_task(task: Task, provider: Provider, base: Snapshot) -> Task:
    """Adapt a task to its base state. It gets the workspace's path there and, with a warning, the test command that tox
    or nox would call in place of the tool (`agent.measure.automation`). If the workspace is a folder below the named
    path, the tests still run from the named path, as the makers of such images do."""
    from agent.measure.adapters.registry import named_in
    from agent.measure.automation import inner_command, is_tool

    named = task.workspace
    if not (named.nested or is_tool(task.test_command)):
        return task
    with provider.at(base) as box:
        place, inner = box.workdir, inner_command(box, task.test_command)
    if inner is not None:
        log.warning("%s", inner.explanation)
        framework = named_in(inner.command) or "pytest"
        task = replace(task, test_command=inner.command, framework=task.framework or framework.replace("pytest", ""))
    if not named.nested:
        return task
    elsewhere = named.mount is not None and place != named.mount
    command = f"cd {quote(named.mount or '')}; {task.test_command}" if elsewhere else task.test_command
    return replace(task, workspace=replace(named, mount=place, nested=False), test_command=command)


def as_begun(task: Task, begun: Task) -> Task:
    """Return the task with the test command and framework that it had when its run began; `resolve_task` may have
    changed them."""
    return replace(task, test_command=begun.test_command, framework=begun.framework)
