"""Regressions: tests that passed in the base state, are not flaky there, and do not pass any more."""

from __future__ import annotations

from agent.measure import SuiteReport
from agent.measure.ids import file_of

__all__ = ["must_pass", "regressions"]


def must_pass(baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that no patch may break, in the order of running."""
    flaky = frozenset(baseline.flaky)
    return tuple(test for test in baseline.passes if test not in flaky)


def regressions(baseline: SuiteReport, report: SuiteReport) -> tuple[str, ...]:
    """Those of `must_pass` that a report shows not to pass: none where it is not valid, and one that it says nothing of
    only where every test was asked for."""
    if not report.valid:
        return ()
    wanted = must_pass(baseline)
    if not report.complete:
        wanted = tuple(t for t in wanted if t in report.outcomes or file_of(t) in report.outcomes)
    return tuple(test for test in wanted if not report.passed(test))
