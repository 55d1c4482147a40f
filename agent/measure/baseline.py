"""The baseline: how the tests of the base state end, as far as known.

Invariant: a known result does not change. Tests that no run of the base state has reached are run there when first
needed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent.measure import SuiteReport
from agent.measure.ids import file_of


class Baseline:
    """The report of the base state, which grows as further tests run there. Thread-safe.

    `run` runs tests, or files of tests, in the base state; `learned` receives each such report.
    """

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
        """Sets of files that were run together, without others."""

    @property
    def report(self) -> SuiteReport:
        """The current report."""
        with self._lock:
            return self._report

    def cover(self, tests: Iterable[str]) -> None:
        """Run those of these tests, or test files, whose results are unknown."""
        with self._running:
            if unknown := unknown_in(self.report, tests):
                self._learn(self._run(unknown))
                self._run_alone.add(frozenset(unknown))

    def doubt(self, files: Sequence[str], failing: Sequence[str]) -> bool:
        """Whether some of these tests, which fail in a state, also fail in the base state when only these files are
        run. Such tests depend on others and count as flaky from now on."""
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
    """The tests and files whose results the report lacks, fully or in part, and which were never requested."""
    if report.complete:
        return []
    files, asked = set(map(file_of, report.outcomes)), set(report.asked)

    def known(name: str) -> bool:
        if "::" in name:
            return report.outcome(name) is not None
        return name in files and name not in report.late

    return [name for name in wanted if name not in asked and not known(name)]


def joined(report: SuiteReport, more: SuiteReport) -> SuiteReport:
    """Merge the reports of two runs of one state; if both know a test, the first wins. If the second run is invalid,
    only the list of its requested tests is kept."""
    asked = tuple(dict.fromkeys((*report.asked, *more.asked)))
    if not more.valid:
        return replace(report, asked=asked, complete=report.complete and not asked)
    run = set(more.asked)
    new = Counter(file_of(test) for test in more.outcomes if test not in report.outcomes)
    late = {file: max(1, count - new[file]) for file, count in report.late.items() if file not in run}
    late |= {file: count for file, count in more.late.items() if file in run}
    grows = bool(report.late) or not more.outcomes.keys() <= report.outcomes.keys()
    return replace(
        report,
        outcomes={**report.outcomes, **more.outcomes, **report.outcomes},
        first=len(report.outcomes) if report.first is None and grows else report.first,
        durations={**more.durations, **report.durations},
        messages={**more.messages, **report.messages},
        titles={**more.titles, **report.titles},
        flaky=tuple(dict.fromkeys((*report.flaky, *more.flaky))),
        unexpected=tuple(dict.fromkeys((*report.unexpected, *more.unexpected))),
        late=late,
        asked=asked,
        complete=report.complete and not asked,
    )
