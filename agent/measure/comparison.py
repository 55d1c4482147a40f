"""Compare the test results of a state with those of the base state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of, holds
from agent.measure.regressions import regressions

NOT_RUN = "not run:"
"""Prefix of the message of a test that was skipped because others timed out."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes in test results since the base state: test ids in running order. Flaky tests are ignored; an invalid run
    yields an empty comparison."""

    fixed: tuple[str, ...] = ()
    """Tests that failed before and pass now."""
    newly_broken: tuple[str, ...] = ()
    """Tests that passed before and do not pass now. For a file that can no longer be imported, all its tests."""
    failing_still: tuple[str, ...] = ()
    """Tests that failed before and still fail."""
    new_failures: tuple[str, ...] = ()
    """Tests that fail now and were skipped or absent before."""
    unexpected_passes: tuple[str, ...] = ()
    """Tests that pass now although marked as strict expected failures, and did not pass before."""
    asked: int = 0
    """Number of tests that were meant to run."""
    not_run: int = 0
    """Number of tests that did not run because the run was stopped early."""


def compare(baseline: SuiteReport, report: SuiteReport) -> Comparison:
    """Compare the report of a state with the baseline."""
    if not report.valid:
        return Comparison()
    flaky = frozenset(baseline.flaky)
    ends = _ends(baseline, report)
    after = {test: end for test, end in ends.items() if test not in flaky}
    before = {test: baseline.outcome(test) for test in after}
    failing = [test for test, end in after.items() if end.failed]
    failed = {test for test, end in before.items() if end is not None and end.failed}
    messages = report.messages
    left = {t for t, end in after.items() if end is Outcome.SKIPPED and messages.get(t, "").startswith(NOT_RUN)}
    return Comparison(
        fixed=tuple(test for test, end in after.items() if end is Outcome.PASSED and test in failed),
        newly_broken=tuple(test for test in regressions(baseline, report) if test not in left),
        failing_still=tuple(test for test in failing if test in failed),
        new_failures=tuple(test for test in failing if before[test] in (None, Outcome.SKIPPED)),
        unexpected_passes=tuple(t for t in report.unexpected if t in after and t not in baseline.unexpected),
        asked=len(ends) + report.left_out,
        not_run=report.left_out + len(left),
    )


def _ends(baseline: SuiteReport, report: SuiteReport) -> Mapping[str, Outcome]:
    """How each test ended; a file that could not be imported is replaced by its tests in the baseline."""
    ends: dict[str, Outcome] = {}
    for test, end in report.outcomes.items():
        inside = test == file_of(test) and end is Outcome.ERROR and test not in baseline.outcomes
        known = [each for each in baseline.outcomes if holds(test, each)] if inside else []
        ends |= dict.fromkeys(known or [test], end)
    return ends
