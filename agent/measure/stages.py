"""Stages: a patch is measured by its goal tests, then by the tests that it is likeliest to break, then by all.

Law: only a run of all tests accepts a patch. What an earlier stage refuses, all tests would have refused too, as far as
a test does not depend on which others ran before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.measure import SuiteReport
from agent.measure.flaky import forgiven
from agent.measure.measurer import ENOUGH_REGRESSIONS, Measurer
from agent.measure.regressions import regressions
from sandboxes import Snapshot

__all__ = ["Trial"]


@dataclass(slots=True)
class Trial:
    """The measurements that decide about one state."""

    measurer: Measurer
    base: Snapshot
    baseline: SuiteReport
    goals: tuple[str, ...]
    snapshot: Snapshot
    strict: bool = False
    """Whether a state that passes some of its goal tests, and not all, is measured by all tests too, to see what it
    broke for that."""
    runs: int = field(default=0, init=False)
    """Runs of the tests that were made: those whose result was not known."""

    def report(self, select: Callable[[], Sequence[str]]) -> SuiteReport:
        """The report that decides: of the goal tests when one of them does not pass (`strict`: when none does), of the
        tests that `select` names when they show a regression, else of all tests."""
        known = self.measurer.known(self.snapshot)
        if not self.goals or (known is not None and self._reached(known)):
            return self._of_all()
        of_goals = self._run(self.snapshot, self.goals)
        enough = self._reached(of_goals) or (self.strict and any(map(of_goals.passed, self.goals)))
        if not enough or of_goals.complete:  # another runner than pytest runs all that it has
            return of_goals
        return _with_goals(self._refusal(select()) or self._of_all(), of_goals)

    def _reached(self, report: SuiteReport) -> bool:
        return all(report.passed(goal) for goal in self.goals)

    def _of_all(self) -> SuiteReport:
        report = self._run(self.snapshot, cut=True)
        return self._confirmed(report) if self.strict or self._reached(report) else report

    def _refusal(self, selected: Sequence[str]) -> SuiteReport | None:
        """The report of the selected tests if they show a regression that does not come of the selection: the test
        fails when the broken ones are run alone, and passes so in the base state."""
        report = self._run(self.snapshot, selected, cut=True) if selected else None
        broken = regressions(self.baseline, report)[:ENOUGH_REGRESSIONS] if report is not None else ()
        if not broken:
            return None
        before, after = self._run(self.base, broken), self._run(self.snapshot, broken)
        return report if any(before.passed(test) and not after.passed(test) for test in broken) else None

    def _confirmed(self, report: SuiteReport) -> SuiteReport:
        """The report of all tests; the only regressions of a patch, when they are few, are run a second time."""
        broken = regressions(self.baseline, report) if report.complete else ()
        if not 0 < len(broken) < ENOUGH_REGRESSIONS:
            return report
        return forgiven(report, self._run(self.snapshot, broken), broken)

    def _run(self, snapshot: Snapshot, tests: Sequence[str] = (), *, cut: bool = False) -> SuiteReport:
        report, made = self.measurer.ask(snapshot, tests, cut=cut)
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
