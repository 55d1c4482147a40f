"""The value of a state by its test results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.actions.comparison import stopped_early
from agent.actions.excerpt import excerpt
from agent.evaluate.value import EvaluationInput
from agent.measure import Outcome, SuiteReport
from agent.measure.comparison import compare
from agent.measure.regressions import regressions
from agent.run.tree.evaluation import Evaluation

BASE_VALUE = 0.1
"""The value of a state without progress or harm."""
BEST_UNSOLVED = 0.9
GETS_FURTHER = 0.25
LEAST_HARM = 0.1
LEAST_HARM_OF_MANY = 0.2
"""The least harm of a test run that was cut short, so that the number of broken tests is unknown."""
MESSAGE_BYTES = 1_500
NOTED = 3


@dataclass(frozen=True, slots=True)
class PassingTests:
    """Weighs goal tests that pass against tests that no longer pass.

    value = (0.1 + 0.8 * progress) * (1 - harm), and 1 if solved; an invalid report has value 0.

    progress: the mean over the goal tests of 1 for a test that passes, and 1/4 for one that could not be set up or
    imported in the base state and now fails in its own code.
    harm: 0 if every test that passed in the base state still passes; else the number that do not, divided by the number
    of tests that count (tests that passed in the base state, and goals), at least 0.1, and at least 0.2 if the run was
    cut short because of them.
    Flaky tests count in neither. A report of only some tests never solves a state; its harm is that of these tests.
    Without known goals, progress is 0 and nothing is solved.
    """

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """Evaluate the state by its report. The root's report is the baseline."""
        report, baseline = case.report, case.path[0].report if case.path else case.report
        if not report.valid:
            return Evaluation(0.0, notes=f"The tests gave no valid result: {report.problem}")
        goals = case.task.goal_tests
        progress = sum(_credit(baseline, report, goal) for goal in goals) / len(goals) if goals else 0.0
        broken = regressions(baseline, report)
        least = LEAST_HARM_OF_MANY if report.left_out else LEAST_HARM
        harm = max(least, len(broken) / (len(baseline.passes) + len(goals))) if broken else 0.0
        solved = bool(goals) and progress == 1.0 and not broken and report.conclusive
        value = (BASE_VALUE + (BEST_UNSOLVED - BASE_VALUE) * progress) * (1.0 - harm)
        open_goals = [goal for goal in goals if report.outcome(goal) is not Outcome.PASSED]
        return Evaluation(
            value=1.0 if solved else value,
            solved=solved,
            parts={"progress": progress, "harm": harm},
            notes=_notes(baseline, report, open_goals, broken),
        )


def _credit(baseline: SuiteReport, report: SuiteReport, goal: str) -> float:
    outcome = report.outcome(goal)
    if outcome is Outcome.PASSED:
        return 1.0
    further = outcome is Outcome.FAILED and baseline.outcome(goal) is Outcome.ERROR
    return GETS_FURTHER if further else 0.0


def _notes(baseline: SuiteReport, report: SuiteReport, open_goals: Sequence[str], broken: Sequence[str]) -> str:
    parts: list[str] = []
    for title, tests in (("Still failing", open_goals), ("Broken", broken)):
        for test in tests[:NOTED]:
            outcome = report.outcome(test)
            message = excerpt(report.messages.get(test, ""), MESSAGE_BYTES)[0]
            parts.append(f"{title}: {test} ({outcome.value if outcome else 'not run'})\n{message}".rstrip())
        if len(tests) > NOTED:
            parts.append(f"{title}: {len(tests) - NOTED} more")
    if report.left_out:
        parts.append(stopped_early(compare(baseline, report), report))
    return "\n".join(parts)
