"""Regressions: tests that passed in the root state, are not flaky there, and do not pass any more."""

from __future__ import annotations

from agent.measure import SuiteReport
from agent.measure.ids import file_of

__all__ = ["must_pass", "regressions"]


def must_pass(baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that no patch may break, in the order of running."""
    flaky = frozenset(baseline.flaky)
    return tuple(test for test in baseline.passes if test not in flaky)


def regressions(baseline: SuiteReport, report: SuiteReport) -> tuple[str, ...]:
    """Those of `must_pass` that a report shows not to pass; none if it is not valid. Tests that are not in the report
    count only if all tests, or all of their file, were run."""
    if not report.valid:
        return ()
    whole = frozenset() if report.left_out else frozenset(report.asked).difference(report.late)

    def was_run(test: str) -> bool:
        file = file_of(test)
        return test in report.outcomes or file in report.outcomes or file in whole

    wanted = must_pass(baseline)
    if not report.complete:
        wanted = tuple(test for test in wanted if was_run(test))
    return tuple(test for test in wanted if not report.passed(test))
