"""Regressions: tests that passed in the base state, are not flaky there, and no longer pass."""

from __future__ import annotations

from agent.measure import SuiteReport
from agent.measure.ids import file_of


def must_pass(baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that no patch may break, in the order of running."""
    flaky = frozenset(baseline.flaky)
    return tuple(test for test in baseline.passes if test not in flaky)


def regressions(baseline: SuiteReport, report: SuiteReport) -> tuple[str, ...]:
    """Tests of `must_pass` that do not pass in the report; none if it is invalid. A test that the report lacks counts
    only if all tests, or all of its file, were run."""
    if not report.valid:
        return ()
    whole = frozenset() if report.left_out else frozenset(report.asked).difference(report.late)

    def was_run(test: str) -> bool:
        file = file_of(test)
        return test in report.outcomes or file in report.outcomes or file in whole

    tests = (test for test in must_pass(baseline) if report.complete or was_run(test))
    return tuple(test for test in tests if not report.passed(test))
