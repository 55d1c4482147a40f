"""Goal tests: the tests that a solution has to make pass, resolved against the test results of the base state."""

from __future__ import annotations

from difflib import get_close_matches

from agent.errors import UsageError
from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of, holds
from agent.measure.messages import INSTALL, missing_package
from agent.measure.naming import Names, likely_id
from agent.task import Task


def resolve_goals(task: Task, baseline: SuiteReport) -> tuple[str, ...]:
    """The failing tests that the task names, in the order in which they run. If the task names none, the goals are all
    tests that fail in the base state if the task says so (`goal_failing`), except those that lack a package, else
    unknown: a test that happens to fail is not a goal. A file, class or unparametrised function stands for the failing
    tests in it. Flaky tests are never goals. A test in a file that cannot be imported is accepted as named. Names may
    have any form that `agent.measure.naming` accepts.

    Raises:
        UsageError: a goal does not exist, is ambiguous, or passes already; or there is neither an issue nor a goal.
    """
    failing = tuple(test for test in baseline.failures if test not in baseline.flaky)
    if not (failing or task.goal_tests or task.statement.strip()):
        raise UsageError("no test fails, so there is nothing to fix; to work on an issue: ramify solve --issue TEXT")
    if not task.goal_tests:
        return _repairable(failing, baseline) if task.goal_failing else ()
    goals: dict[str, None] = {}
    names = Names(baseline, lambda path: "")
    for goal in (_test_id(name, names, baseline) for name in task.goal_tests):
        matches = [test for test in failing if holds(goal, test)]
        goals |= dict.fromkeys(matches or [_without_result(goal, baseline)])
    return tuple(goals)


def _repairable(failing: tuple[str, ...], baseline: SuiteReport) -> tuple[str, ...]:
    """The failing tests that an edit could repair: not those that lack a package.

    Raises:
        UsageError: all of them do.
    """
    missing = {test: missing_package(baseline.messages.get(test, "")) for test in failing}
    packages = ", ".join(sorted(filter(None, set(missing.values()))))
    if failing and all(missing.values()):
        raise UsageError(f"the tests that fail only lack a package ({packages}): {INSTALL}; or name a test as a goal")
    return tuple(test for test in failing if not missing[test])


def _test_id(goal: str, names: Names, baseline: SuiteReport) -> str:
    """The test id of a goal; the name itself if no test matches."""
    if baseline.outcome(goal) is not None:
        return goal
    matches = names.meant(goal)
    if len(matches) > 1:
        raise UsageError(f"the goal test {goal!r} may be {' or '.join(matches[:3])}: name one of them")
    broken = [test for test, outcome in baseline.outcomes.items() if "::" not in test and outcome is Outcome.ERROR]
    return matches[0] if matches else likely_id(goal, broken) or goal


def _without_result(goal: str, baseline: SuiteReport) -> str:
    """Check a goal that matches no failing test, which is valid only in a file that cannot be imported."""
    outcome = baseline.outcome(goal)
    if outcome is None:
        near = get_close_matches(goal, [*baseline.outcomes, *map(file_of, baseline.outcomes)], n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "no test has such a name"
        raise UsageError(f"there is no test {goal!r}: {hint}")
    if any(holds(goal, test) for test in baseline.flaky):
        raise UsageError(f"the goal test {goal!r} is flaky: it ended differently in two runs of the unchanged code")
    if outcome is not Outcome.ERROR:
        raise UsageError(f"the goal test {goal!r} does not fail: it is {outcome.value} before any change")
    return goal
