"""Which tests have to pass in the end: the goal tests of a task, checked against how the base state's tests end."""

from __future__ import annotations

from difflib import get_close_matches

from agent.errors import UsageError
from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of, holds
from agent.measure.naming import Names, likely_id
from agent.task import Task

__all__ = ["resolve_goals"]


def resolve_goals(task: Task, baseline: SuiteReport) -> tuple[str, ...]:
    """The failing tests that the task names, in the order of running. Without names, all that fail in the base state
    where the task says so (`goal_failing`); else the goals are unknown: a test that happens to fail is no goal. A file,
    class or unparametrised function stands for the failing tests in it. Flaky tests are no goals. A test in a file that
    cannot be imported is taken as it is named. A name may be any that `agent.measure.naming` knows.

    Raises:
        UsageError: a goal does not exist, may be several tests, or passes already.
    """
    failing = tuple(test for test in baseline.failures if test not in baseline.flaky)
    if not task.goal_tests:
        return failing if task.goal_failing else ()
    found: dict[str, None] = {}
    names = Names(baseline, lambda path: "")
    for goal in (_meant(name, names, baseline) for name in task.goal_tests):
        matches = [test for test in failing if holds(goal, test)]
        found |= dict.fromkeys(matches or [_unseen(goal, baseline)])
    return tuple(found)


def _meant(goal: str, names: Names, baseline: SuiteReport) -> str:
    """The id of a goal, as it is where nothing is known of it."""
    if baseline.outcome(goal) is not None:
        return goal
    meant = names.meant(goal)
    if len(meant) > 1:
        raise UsageError(f"the goal test {goal!r} may be {' or '.join(meant[:3])}: name one of them")
    broken = [test for test, outcome in baseline.outcomes.items() if "::" not in test and outcome is Outcome.ERROR]
    return meant[0] if meant else likely_id(goal, broken) or goal


def _unseen(goal: str, baseline: SuiteReport) -> str:
    """A goal that names no known failing test: legal in a file that cannot be imported."""
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
