"""Regressions: tests that passed in the base state, are not flaky there, and no longer pass."""

from __future__ import annotations

from agent.measure import SuiteReport
from agent.measure.ids import file_of
from agent.measure.inside.wanted import covers


def must_pass(baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that no patch may break, in the order of running."""
    flaky = frozenset(baseline.flaky)
    return tuple(test for test in baseline.passes if test not in flaky)


def regressions(baseline: SuiteReport, report: SuiteReport) -> tuple[str, ...]:
    """Tests of `must_pass` that do not pass in the report; none if it is invalid. A test that the report lacks counts
    only if all tests, or all of its file, class or function, were run."""
    if not report.valid:
        return ()
    whole = frozenset(test for test in report.asked if file_of(test) not in report.late and not report.left_out)

    def was_run(test: str) -> bool:
        return test in report.outcomes or file_of(test) in report.outcomes or covers(whole, test)

    tests = (test for test in must_pass(baseline) if report.complete or was_run(test))
    return tuple(test for test in tests if not report.passed(test))
