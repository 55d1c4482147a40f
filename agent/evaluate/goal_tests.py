"""Goal tests: the tests that a solution has to make pass, resolved against the test results of the base state."""

from __future__ import annotations

import posixpath
from difflib import get_close_matches
from typing import Any

from agent.errors import JournalError, UsageError
from agent.measure import Outcome, SuiteReport
from agent.measure.adapters.registry import PYTEST_COMMAND, framework_of
from agent.measure.ids import file_of, holds
from agent.measure.messages import INSTALL, missing_package
from agent.measure.naming import Names, likely_id
from agent.run.run import Run
from agent.task import Task, load_task
from sandboxes import Provider, Sandbox, Snapshot

LIST_COMMAND = PYTEST_COMMAND.replace("-q", "--collect-only -q")
"""Lists the names of the tests."""


def resolve_goals(task: Task, baseline: SuiteReport) -> tuple[str, ...]:
    """The failing tests that the task names, in the order in which they run; with `goal_failing`, names of other tests
    are left out. A task that names none, with `goal_failing`, has all failing tests of the base state as goals, except
    those that lack a package. Otherwise its goals are unknown: a test that happens to fail is not a goal.

    A file, class or unparametrised function stands for the failing tests in it. Flaky tests are never goals. A test in
    a file that cannot be imported is accepted as named. Names may have any form that `agent.measure.naming` accepts.

    Raises:
        UsageError: a goal does not exist, is ambiguous, or passes already (with `goal_failing`: all of them do); or
            there is neither an issue nor a goal.
    """
    failing = tuple(test for test in baseline.failures if test not in baseline.flaky)
    if not (failing or task.goal_tests or task.statement.strip()):
        raise UsageError("no test fails, so there is nothing to fix; to work on an issue: ramify solve --issue TEXT")
    if not task.goal_tests:
        return _repairable(failing, baseline) if task.goal_failing else ()
    goals: dict[str, None] = {}
    refused: list[UsageError] = []
    for found in _found(task, baseline).values():
        if isinstance(found, UsageError):
            refused.append(found)
        else:
            goals |= dict.fromkeys(found)
    if refused and not (goals and task.goal_failing):
        raise refused[0]
    return tuple(goals)


def require_files(task: Task, provider: Provider, base: Snapshot) -> None:
    """Check that the files in the goals' names exist, before any test is run. A path may start above or below the
    workspace.

    Raises:
        UsageError: there is no such file.
    """
    paths = dict.fromkeys(posixpath.normpath(file_of(goal.strip())) for goal in task.goal_tests)
    named = [path for path in paths if path.endswith(".py")]
    if task.goal_failing or not named or framework_of(task.framework, task.test_command) != "pytest":
        return
    with provider.at(base) as box:
        for path in named:
            _require_file(box, path)


def _require_file(box: Sandbox, path: str) -> None:
    if box.exec(["test", "-e", path], timeout_s=60).exit_code:
        same = _files(box, posixpath.basename(path))
        if same is not None and not any(f"/{file}".endswith(f"/{path}") or path.endswith(f"/{file}") for file in same):
            near = get_close_matches(path, _files(box, "test*.py") or (), n=3)
            raise UsageError(f"there is no file {path}" + (f": did you mean {' or '.join(near)}?" if near else ""))


def _files(box: Sandbox, name: str) -> list[str] | None:
    """The files of the workspace with this name, a pattern of `find`; None if they cannot be listed."""
    found = box.exec(["find", ".", "-name", ".git", "-prune", "-o", "-name", name, "-print"], timeout_s=60)
    if found.exit_code or found.stdout_bytes > len(found.stdout):
        return None
    return [line.removeprefix("./") for line in found.stdout.decode(errors="replace").splitlines()]


def goals_of(task: dict[str, Any], root: SuiteReport) -> tuple[str, ...]:
    """The tests that have to pass, given a task from the journal and the report of the base state; empty if none is
    known."""
    try:
        return resolve_goals(load_task(task), root)
    except (JournalError, UsageError):
        return ()


def goals_of_run(run: Run) -> tuple[str, ...]:
    """The goal tests of a run; empty if none is known."""
    return goals_of(run.started.task, run.tree.root.report) if run.started and len(run.tree) else ()


def left_out(task: Task, baseline: SuiteReport) -> tuple[str, ...]:
    """With `goal_failing`, the names in `goal_tests` of tests that do not fail in the base state and so are not
    goals."""
    if not task.goal_failing:
        return ()
    return tuple(name for name, found in _found(task, baseline).items() if isinstance(found, UsageError))


def _found(task: Task, baseline: SuiteReport) -> dict[str, list[str] | UsageError]:
    """For each name in `goal_tests` the goals that it stands for, or why it stands for none."""
    found: dict[str, list[str] | UsageError] = {}
    failing = [test for test in baseline.failures if test not in baseline.flaky]
    names = Names(baseline, lambda path: "")
    for name in task.goal_tests:
        try:
            goal = _test_id(name, names, baseline)
            found[name] = [test for test in failing if holds(goal, test)] or [_without_result(goal, baseline)]
        except UsageError as error:
            found[name] = error
    return found


def _repairable(failing: tuple[str, ...], baseline: SuiteReport) -> tuple[str, ...]:
    """The failing tests that an edit could repair: not those that lack a package.

    Raises:
        UsageError: all of them do.
    """
    missing = {test: missing_package(baseline.messages.get(test, "")) for test in failing}
    packages = ", ".join(sorted(filter(None, set(missing.values()))))
    if failing and all(missing.values()):
        raise UsageError(f"the failing tests fail only because of missing packages ({packages}): {INSTALL}")
    return tuple(test for test in failing if not missing[test])


def lacking(goals: tuple[str, ...], baseline: SuiteReport) -> dict[str, str]:
    """The goals that fail because they, or the files that they are in, cannot import a package, each with that package.
    A test that imports a module by a computed name may do so because of the bug, and is not among them."""
    messages = baseline.messages
    own = {goal: messages[goal] for goal in goals if "importlib" not in messages.get(goal, "importlib")}
    of_files = {goal: messages.get(file_of(goal), "") for goal in goals}
    missing = {goal: missing_package(message) for goal, message in (of_files | own).items()}
    return {goal: package for goal, package in missing.items() if package}


def _test_id(goal: str, names: Names, baseline: SuiteReport) -> str:
    """The test id of a goal; the name itself if no test matches."""
    if baseline.outcome(goal) is not None:
        return goal
    matches = names.meant(goal)
    if len(matches) > 1:
        raise UsageError(f"the goal test {goal!r} is ambiguous: it may be {' or '.join(matches[:3])}; name one of them")
    broken = [test for test, outcome in baseline.outcomes.items() if "::" not in test and outcome is Outcome.ERROR]
    return matches[0] if matches else likely_id(goal, broken) or goal


def _without_result(goal: str, baseline: SuiteReport) -> str:
    """Check a goal that matches no failing test, which is valid only in a file that cannot be imported."""
    outcome = baseline.outcome(goal)
    if outcome is None:
        near = get_close_matches(goal, [*baseline.outcomes, *map(file_of, baseline.outcomes)], n=3, cutoff=0.5)
        if near:
            raise UsageError(f"there is no test {goal!r}: did you mean {' or '.join(dict.fromkeys(near))}?")
        remedy = f"; `{LIST_COMMAND}` lists the names" if baseline.adapter == "pytest" else ""
        raise UsageError(f"there is no test named {goal!r}{remedy}")
    if any(holds(goal, test) for test in baseline.flaky):
        raise UsageError(f"the goal test {goal!r} is flaky: it ended differently in two runs of the unchanged code")
    if outcome is Outcome.PASSED:
        raise UsageError(
            f"{goal!r} passes already, so there is nothing to fix; without a test, `ramify fix` repairs whatever fails"
        )
    if outcome is not Outcome.ERROR:
        raise UsageError(f"the goal test {goal!r} does not fail: its outcome before any change is {outcome.value}")
    return goal
