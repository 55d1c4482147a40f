"""Which runs of a task's tests may be copied from a template, and which begin with a new process.

Law: a new process decides. Tests that end differently in a copied run of the base state are never copied again, and
what was never compared is not copied.
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

__all__ = ["Trust"]

log = logging.getLogger(__name__)

LOSSES = 3
"""After so many lost templates no run is copied any more."""


class Trust:
    """Chooses how runs begin. Thread-safe. `compare` makes a copied run of some tests of the base state."""

    def __init__(self, baseline: Baseline, compare: Callable[[tuple[str, ...]], SuiteReport]) -> None:
        self._baseline = baseline
        self._compare = compare
        self._lock = threading.Lock()
        self._asked: Counter[tuple[str, ...]] = Counter()
        self._agreeing: dict[tuple[str, ...], bool] = {}
        self._distrusted: set[str] = set()
        self._losses = 0

    def start(self, tests: tuple[str, ...]) -> Start:
        """How a run of these tests, of all when none is named, begins. A session of their own is for tests that are
        run again and again."""
        with self._lock:
            self._asked[tests] += 1
            often = self._asked[tests] > 1
            unsafe = self._distrusted.union(self._baseline.report.unsafe or ())
            if self._losses >= LOSSES or any(not tests or any(holds(test, each) for test in tests) for each in unsafe):
                return Start.NEW
            if self._baseline.report.unsafe is None:
                return Start.SESSION if tests and often and self._agree(tests) else Start.NEW
        return Start.SESSION if often or not tests else Start.PACKAGES

    def distrust(self, tests: Sequence[str]) -> None:
        """Never copy a run of these tests again."""
        with self._lock:
            self._distrusted.update(tests)
        if tests:
            log.info("run in new processes from now on: %s", ", ".join(tests[:5]))

    def lost(self, error: Exception) -> None:
        """A template was lost in a run."""
        with self._lock:
            self._losses += 1
            losses = self._losses
        log.info("%s; the tests run in a new process%s", error, " from now on" if losses >= LOSSES else "")

    def _agree(self, tests: tuple[str, ...]) -> bool:
        """Whether these tests of the base state end in a copied run as they did in the baseline."""
        if tests not in self._agreeing:
            try:
                outcomes = self._compare(tests).outcomes
            except TemplateLost:
                outcomes = {}
            known = self._baseline.report.outcomes
            agreeing = bool(outcomes) and all(outcome is known.get(test) for test, outcome in outcomes.items())
            self._agreeing[tests] = agreeing
        return self._agreeing[tests]
