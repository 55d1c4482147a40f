"""Measurer: the states of one task, measured once per set of tests, and the baseline they are compared with."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from agent.errors import MeasureError
from agent.guard import Protection
from agent.measure import SuiteReport
from agent.measure.suite import rules_for, run_suite
from agent.task import Task
from sandboxes import Provider, Snapshot

__all__ = ["Measurer", "find_baseline"]

log = logging.getLogger(__name__)

CHEAP_S = 20.0
"""A base state whose tests take no longer is measured twice, to find flaky tests."""


class Measurer:
    """Measures states of one task. Thread-safe.

    `baseline` is the report of the base state, as `find_baseline` gives it.
    """

    def __init__(self, provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport) -> None:
        self._provider, self._task, self._base = provider, task, base
        self.rules = rules_for(provider, task, base, baseline)
        self._lock = threading.Lock()
        self._reports: dict[tuple[str, tuple[str, ...]], SuiteReport] = {}

    @property
    def protection(self) -> Protection:
        """The files that decide what the tests say, for `agent.guard.inspect`."""
        return self.rules.protection

    def measure(self, snapshot: Snapshot, tests: Sequence[str] = ()) -> SuiteReport:
        """How these tests end in this state; all of them when none is named. Known results are not found again.

        A run of named tests stops at the first that runs out of time; the rest is reported as skipped.
        """
        key = (snapshot.digest, tuple(tests))
        with self._lock:
            known = self._reports.get(key)
        if known is None:
            known = self.measure_afresh(snapshot, tests)
            with self._lock:
                self._reports[key] = known
        return known

    def measure_afresh(self, snapshot: Snapshot, tests: Sequence[str] = ()) -> SuiteReport:
        """As `measure`, by a run of the tests whatever is known."""
        limits = replace(self.rules.limits, timeouts=1) if tests else self.rules.limits
        return run_suite(self._provider, self._task, snapshot, self._base, tests, replace(self.rules, limits=limits))


def find_baseline(provider: Provider, task: Task, base: Snapshot) -> SuiteReport:
    """The report of the base state, before any edit. When the tests are quick they are run twice, and those that end
    differently are listed as flaky.

    Raises:
        MeasureError: the tests cannot be run at all; the message says what to change.
    """
    first = _first_run(provider, task, base)
    if first.duration_s > CHEAP_S:
        return first
    second = Measurer(provider, task, base, first).measure_afresh(base)
    ids = dict.fromkeys([*first.outcomes, *second.outcomes])
    flaky = tuple(test for test in ids if first.outcomes.get(test) is not second.outcomes.get(test))
    if flaky:
        log.info("%d flaky tests are set aside: %s", len(flaky), ", ".join(flaky[:5]))
    return replace(first, flaky=flaky)


def _first_run(provider: Provider, task: Task, base: Snapshot) -> SuiteReport:
    """A valid run with generous limits, read by the best adapter that works for the command."""
    rules = rules_for(provider, task, base)
    report = run_suite(provider, task, base, base, rules=rules)
    if not report.valid and not report.outcomes and not _means_pytest(report, task.test_command):
        report = run_suite(provider, task, base, base, rules=replace(rules, adapter="exit-code"))
    if not report.valid or report.exit_code in (126, 127):
        raise MeasureError(_complaint(report, task.test_command))
    return report


def _means_pytest(report: SuiteReport, command: str) -> bool:
    """Whether a run that pytest did not report was meant to be one of pytest: its exit code says too little then."""
    return report.timed_out or "pytest" in command or "pytest" in report.output


def _complaint(report: SuiteReport, command: str) -> str:
    last = next((line.strip() for line in reversed(report.output.splitlines()) if line.strip()), "no output")
    if report.exit_code in (126, 127):
        return (
            f"the test command {command!r} cannot be run ({last}); name another with --test, or install it with --setup"
        )
    if "No module named pytest" in report.output:
        return "pytest is not installed in the sandbox; install it with --setup 'pip install pytest'"
    if report.timed_out:
        return f"{command!r} took longer than {report.duration_s:.0f} s; name a quicker command with --test"
    if "no tests were collected" in report.problem:
        return f"{command!r} collects no tests; name the tests to run with --test"
    return f"{command!r} does not give a result that can be trusted: {report.problem} ({last}); see --test and --setup"
