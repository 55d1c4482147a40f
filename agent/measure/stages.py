"""Stages: a patch is measured by its goal tests, then by all tests, or by those in the scope of its state.

Law: only a run of all tests, or of the scope, accepts a patch. What an earlier stage refuses, all tests would have
refused too, as far as a test does not depend on which others ran before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent.measure import SuiteReport
from agent.measure.flaky import forgiven
from agent.measure.measurer import ENOUGH_REGRESSIONS, Measurer
from agent.measure.regressions import regressions
from sandboxes import Snapshot

__all__ = ["StagedMeasurement"]


@dataclass(slots=True)
class StagedMeasurement:
    """The measurements that decide about one state."""

    measurer: Measurer
    goals: tuple[str, ...]
    snapshot: Snapshot
    strict: bool = False
    """Whether a state that passes some of its goal tests is measured by all tests as well, to see what it broke."""
    runs: int = field(default=0, init=False)
    """How many test runs were made, known results apart."""

    def report(self) -> SuiteReport:
        """The deciding report: of the goal tests if one of them fails (`strict`: if all fail), else of all tests or of
        the scope, with the goal tests."""
        known = self.measurer.known(self.snapshot)
        if not self.goals or (known is not None and self._reached(known)):
            return self._of_all()
        of_goals = self._run(self.goals)
        enough = self._reached(of_goals) or (self.strict and any(map(of_goals.passed, self.goals)))
        if not enough or of_goals.complete:  # a runner that cannot select runs all that it has
            return of_goals
        return self._of_all(of_goals)

    def _reached(self, report: SuiteReport) -> bool:
        return all(report.passed(goal) for goal in self.goals)

    def _of_all(self, of_goals: SuiteReport | None = None) -> SuiteReport:
        report = self._run(cut=True)
        report = _with_goals(report, of_goals) if of_goals is not None else report
        return self._confirmed(report) if self.strict or self._reached(report) else report

    def _confirmed(self, report: SuiteReport) -> SuiteReport:
        """The report; if it has only a few regressions, these tests are run a second time."""
        broken = regressions(self.measurer.baseline.report, report) if report.conclusive else ()
        if not 0 < len(broken) < ENOUGH_REGRESSIONS:
            return report
        return forgiven(report, self._run(broken), broken)

    def _run(self, tests: Sequence[str] = (), *, cut: bool = False) -> SuiteReport:
        report, made = self.measurer.ask(self.snapshot, tests, cut=cut)
        self.runs += made
        return report


def _with_goals(report: SuiteReport, of_goals: SuiteReport) -> SuiteReport:
    """The report, with what the goal tests said before where it came to no word about them."""
    if report.complete or not report.valid:
        return report
    return replace(
        report,
        outcomes={**of_goals.outcomes, **report.outcomes},
        durations={**of_goals.durations, **report.durations},
        unexpected=tuple(dict.fromkeys((*of_goals.unexpected, *report.unexpected))),
    )
