"""Starts a run for `solve` and `fix`: reads the issue and the checkout, creates the task and the run directory, and
starts the search."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.analysis.report.progress import Progress
from agent.cli import checkout
from agent.cli.ci.github import ISSUE, fetch_issue
from agent.cli.interactive import OutputOptions, run_interactively, say
from agent.errors import RamifyError, UsageError, exit_code_of
from agent.measure.adapters.registry import choose
from agent.run.paths import new_run_dir, note_run, slug, store_of
from agent.run.run import Run
from agent.settings import Settings
from agent.task import Task
from sandboxes import SandboxError, Workspace

ISSUE_BYTES = 1 << 20
"""The maximum size of an issue. A larger one is an error, because it would not fit into a model's context."""


@dataclass(frozen=True, slots=True)
class SolveRequest:
    """What the user wants solved."""

    statement: str
    goals: tuple[str, ...]
    """The goal tests."""
    repo: Path | None
    """The checkout. None: the workspace of the image if an image is set, else the current directory."""
    test: str | None
    """The command that runs the tests; None: detected from the repository's files."""
    goal_failing: bool = False
    """Whether all tests that fail now are goals if no goals are named."""


def read_issue(source: str | None, text: str | None, *, may_be_empty: bool) -> str:
    """Return the text of the issue. `source`: a file, `-` for stdin, or `owner/repository#number`; `text`: the text.

    Raises:
        agent.errors.UsageError: both or neither were given, the issue is empty but must not be, or it cannot be read.
        agent.errors.ModelError: GitHub cannot be reached.
    """
    if source is not None and text is not None:
        raise UsageError("give the issue once: as ISSUE or as --issue TEXT")
    if source is None and text is None and not may_be_empty:
        raise UsageError("no issue: give a file, - for stdin, owner/repository#number, or --issue TEXT")
    statement = (text or "") if source is None else _issue_of(source)
    if not statement.strip() and not may_be_empty:
        raise UsageError(f"the issue is empty ({source or '--issue'}): say what is wrong, or give a --goal-test")
    return statement


def _issue_of(source: str) -> str:
    if ISSUE.fullmatch(source) and not Path(source).exists():
        return fetch_issue(source)
    try:
        if source == "-":
            data = sys.stdin.buffer.read(ISSUE_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(ISSUE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the issue {source}: {error.strerror}; to give the text itself, use --issue"
        ) from error
    if len(data) > ISSUE_BYTES:
        raise UsageError(f"the issue {source} is larger than {ISSUE_BYTES} bytes; shorten it")
    return data.decode("utf-8", errors="replace")


def run_solve(
    request: SolveRequest, settings: Settings, out: Path | None, output: OutputOptions, *, apply: bool = False
) -> int:
    """Search in a new run directory, deliver the result, and return the exit code. `apply`: also apply the patch to the
    checkout.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: as in `agent.cli.interactive.run_interactively`.
    """
    work_tree = None
    if request.repo is not None or not settings.sandbox.image:
        work_tree = checkout.inspect(request.repo)
    if apply and work_tree is None:
        raise UsageError("--apply needs the checkout that the patch is for; name it with --repo")
    output = replace(output, apply_to=work_tree.path if apply and work_tree else None)
    name = slug(request.statement or next(iter(request.goals), "failing tests"))
    task = _task(name, request, work_tree, settings)
    from agent.build.composition import check, start
    from agent.build.sandboxes import python_of

    directory = new_run_dir(out, name)
    check(settings)
    if work_tree and work_tree.dirty:
        say(f"{work_tree.path} has uncommitted changes; the search starts from them as they are")
    note_run(directory)
    if not output.quiet:
        say(f"run {directory}")
    progress = Progress(quiet=output.quiet, python=partial(python_of, store=store_of(directory)))
    try:
        return run_interactively(partial(start, task, settings, directory), output, progress)
    except (RamifyError, SandboxError) as error:
        if exit_code_of(error) == UsageError.exit_code:
            _remove_unless_searched(directory)
        raise


def _remove_unless_searched(directory: Path) -> None:
    """Remove the directory of a run that was refused before it searched. It cannot be resumed, and the corrected
    command could not use the same directory."""
    with Run.read(directory) as run:
        searched = len(run.tree) > 1 or run.usage.model_calls > 0
    if not searched:
        shutil.rmtree(directory, ignore_errors=True)


def _task(name: str, request: SolveRequest, work_tree: checkout.Checkout | None, settings: Settings) -> Task:
    box = settings.sandbox
    workspace = Workspace(
        path=work_tree.path if work_tree else None,
        image=box.image,
        environment=box.environment,
        setup=box.setup,
        env=box.env,
    )
    base = work_tree.head if work_tree else ""
    framework, command = choose(workspace.path, request.test, settings.measure.framework)
    return Task(
        id=_identity(name, request, base),
        statement=request.statement,
        workspace=workspace,
        test_command=command,
        goal_tests=request.goals,
        goal_failing=request.goal_failing,
        base=base,
        framework=framework,
        tags={"source_url": work_tree.origin} if work_tree and work_tree.origin else {},
    )


def _identity(name: str, request: SolveRequest, base: str) -> str:
    """Return the task's id: the name and a hash of the issue, the commit and the goals."""
    facts = json.dumps([request.statement, sorted(request.goals), base, *(["failing"] if request.goal_failing else [])])
    return f"{name}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"
