"""The baseline: how the tests of the root state end, as far as that is known.

Law: what is known of a test does not change. Tests that no run of the root state has reached are run there when they
are first needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent.measure import SuiteReport
from agent.measure.ids import file_of

__all__ = ["Baseline", "joined"]


class Baseline:
    """The report of the root state, which grows. Thread-safe. `run` runs some tests or test files in the root state;
    `learned` is told each such report."""

    def __init__(
        self,
        report: SuiteReport,
        run: Callable[[Sequence[str]], SuiteReport],
        learned: Callable[[SuiteReport], None] = lambda report: None,
    ) -> None:
        self._report, self._run, self._learned = report, run, learned
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._run_alone: set[frozenset[str]] = set()
        """The sets of files that were run together, without any others."""

    @property
    def report(self) -> SuiteReport:
        """All that is known now."""
        with self._lock:
            return self._report

    def cover(self, tests: Iterable[str]) -> None:
        """Run those of these tests, or tests in these files, whose outcome is not known."""
        wanted = list(tests)
        with self._running:
            if unknown := unknown_in(self.report, wanted):
                self._learn(self._run(unknown))
                self._run_alone.add(frozenset(unknown))

    def doubt(self, files: Sequence[str], failing: Sequence[str]) -> bool:
        """Whether some of these tests, which fail in a state, also fail in the root state if only these files are run:
        they depend on other tests, and are flaky from now on."""
        with self._running:
            if frozenset(files) in self._run_alone:
                return False
            alone = self._run(files)
            self._run_alone.add(frozenset(files))
            flaky = tuple(test for test in failing if alone.valid and not alone.passed(test))
            self._learn(replace(alone, outcomes={}, durations={}, messages={}, late={}, asked=(), flaky=flaky))
        return bool(flaky)

    def _learn(self, more: SuiteReport) -> None:
        with self._lock:
            self._report = joined(self._report, more)
        self._learned(more)


def unknown_in(report: SuiteReport, wanted: Iterable[str]) -> list[str]:
    """Those of the tests and files whose outcomes the report does not have, or not all of them, and that were not asked
    for before."""
    if report.complete:
        return []
    files, asked = set(map(file_of, report.outcomes)), set(report.asked)

    def known(name: str) -> bool:
        if "::" in name:
            return report.outcome(name) is not None
        return name in files and name not in report.late

    return [name for name in wanted if name not in asked and not known(name)]


def joined(report: SuiteReport, more: SuiteReport) -> SuiteReport:
    """Two reports of one state as one; the first has precedence. From a second report that is not valid only what was
    asked for is taken."""
    asked = tuple(dict.fromkeys((*report.asked, *more.asked)))
    if not more.valid:
        return replace(report, asked=asked, complete=report.complete and not asked)
    run = set(more.asked)
    late = {file: count for file, count in report.late.items() if file not in run} | dict(more.late)
    return replace(
        report,
        outcomes={**report.outcomes, **more.outcomes, **report.outcomes},
        first=len(report.outcomes) if report.first is None else report.first,
        durations={**more.durations, **report.durations},
        messages={**more.messages, **report.messages},
        titles={**more.titles, **report.titles},
        flaky=tuple(dict.fromkeys((*report.flaky, *more.flaky))),
        unexpected=tuple(dict.fromkeys((*report.unexpected, *more.unexpected))),
        late=late,
        asked=asked,
        complete=report.complete and not asked,
    )
