"""Decide which test runs may be copied from a template, and which start a new process.

Invariant: if a copied run and a new process disagree, the new process is believed. Tests that end differently in a
copied run of the base state are never copied again, and tests that were never compared are not copied.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from agent.measure import SuiteReport
from agent.measure.baseline import Baseline
from agent.measure.ids import holds
from agent.measure.warm.runner import Start
from sandboxes import TemplateLost

log = logging.getLogger(__name__)

LOSSES = 3
"""After this many lost templates, runs are no longer copied."""
PAID_BACK = 5
"""Number of copied runs that should together save as much time as comparing them in the base state takes."""


class Trust:
    """Chooses how runs start. Thread-safe. `compare` runs some tests of the base state in a copied run."""

    def __init__(self, baseline: Baseline, compare: Callable[[tuple[str, ...]], SuiteReport]) -> None:
        self._baseline = baseline
        self._compare = compare
        self._lock = threading.Lock()
        self._asked: Counter[tuple[str, ...]] = Counter()
        self._agreeing: dict[tuple[str, ...], bool] = {}
        self._pays: dict[tuple[str, ...], bool] = {}
        self._distrusted: set[str] = set()
        self._losses = 0

    def start(self, tests: tuple[str, ...]) -> Start:
        """Choose how a run of these tests, or of all if none is named, starts. Only tests that run repeatedly get a
        session of their own."""
        with self._lock:
            self._asked[tests] += 1
            repeated = self._asked[tests] > 1
            unsafe = self._distrusted.union(self._baseline.report.unsafe or ())
            if self._losses >= LOSSES or any(not tests or any(holds(test, each) for test in tests) for each in unsafe):
                return Start.NEW
            if self._baseline.report.unsafe is None:
                pays = tests and repeated and self._pays.get(tests, True)
                return Start.SESSION if pays and self._agree(tests) else Start.NEW
        return Start.SESSION if repeated or not tests else Start.PACKAGES

    def record_new_run(self, tests: tuple[str, ...], report: SuiteReport) -> None:
        """Learn from a run in a new process whether copying pays: a copy saves only the time to start, and comparing it
        takes the time of the tests."""
        tests_s = sum(report.durations.values())
        with self._lock:
            self._pays[tests] = tests_s <= PAID_BACK * (report.duration_s - tests_s)

    def distrust(self, tests: Sequence[str]) -> None:
        """Never copy a run of these tests again."""
        with self._lock:
            self._distrusted.update(tests)
        if tests:
            log.info("these tests run in new processes from now on: %s", ", ".join(tests[:5]))

    def lost(self, error: Exception) -> None:
        """Count a template that was lost during a run."""
        with self._lock:
            self._losses += 1
            losses = self._losses
        log.info("%s; the tests run in a new process%s", error, " from now on" if losses >= LOSSES else "")

    def _agree(self, tests: tuple[str, ...]) -> bool:
        """Whether these tests end the same way in a copied run of the base state and in the baseline."""
        if tests not in self._agreeing:
            try:
                outcomes = self._compare(tests).outcomes
            except TemplateLost:
                outcomes = {}
            known = self._baseline.report.outcomes
            agreeing = bool(outcomes) and all(outcome is known.get(test) for test, outcome in outcomes.items())
            self._agreeing[tests] = agreeing
        return self._agreeing[tests]
