"""Measure a patch in stages: by its goal tests, then by all tests or by the scope of its state.

Invariant: only a run of all tests, or of the scope, accepts a patch. If an earlier stage refuses a patch, all tests
would refuse it too, unless a test depends on which others ran before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent.measure import SuiteReport
from agent.measure.flaky import with_retries
from agent.measure.measurer import ENOUGH_REGRESSIONS, Measurer
from agent.measure.regressions import regressions
from sandboxes import Snapshot


@dataclass(slots=True)
class StagedMeasurement:
    """The measurements that decide about one state."""

    measurer: Measurer
    goals: tuple[str, ...]
    snapshot: Snapshot
    strict: bool = False
    """Also run all tests on a state that passes only some goal tests, to see what it broke."""
    runs: int = field(default=0, init=False)
    """Test runs made so far; cached results do not count."""

    def report(self) -> SuiteReport:
        """Return the report that decides about the state: of the goal tests only, if one of them fails (`strict`: if
        all of them fail); else of all tests or the scope, together with the goal tests."""
        known = self.measurer.known(self.snapshot)
        if not self.goals or (known is not None and self._reached(known)):
            return self._of_all()
        of_goals = self._run(self.goals)
        enough = self._reached(of_goals) or (self.strict and any(map(of_goals.passed, self.goals)))
        if not enough or of_goals.complete:  # a runner that cannot select runs everything
            return of_goals
        return self._of_all(of_goals)

    def _reached(self, report: SuiteReport) -> bool:
        return all(report.passed(goal) for goal in self.goals)

    def _of_all(self, of_goals: SuiteReport | None = None) -> SuiteReport:
        report = self._run(cut=True)
        report = _with_goals(report, of_goals) if of_goals is not None else report
        return self._confirmed(report) if self.strict or self._reached(report) else report

    def _confirmed(self, report: SuiteReport) -> SuiteReport:
        """Return the report; if there are few regressions, run them a second time first."""
        broken = regressions(self.measurer.baseline.report, report) if report.conclusive else ()
        if not 0 < len(broken) < ENOUGH_REGRESSIONS:
            return report
        return with_retries(report, self._run(broken), broken)

    def _run(self, tests: Sequence[str] = (), *, cut: bool = False) -> SuiteReport:
        report, ran = self.measurer.report_on(self.snapshot, tests, cut=cut)
        self.runs += ran
        return report


def _with_goals(report: SuiteReport, of_goals: SuiteReport) -> SuiteReport:
    """Return the report, completed with the earlier results of goal tests that it did not reach."""
    if report.complete or not report.valid:
        return report
    return replace(
        report,
        outcomes={**of_goals.outcomes, **report.outcomes},
        durations={**of_goals.durations, **report.durations},
        unexpected=tuple(dict.fromkeys((*of_goals.unexpected, *report.unexpected))),
    )
