"""Measurer: the states of one task, measured once per set of tests, and the baseline they are compared with."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.errors import MeasureError
from agent.guard import Protection
from agent.measure import SuiteReport
from agent.measure.adapters.running import UNKNOWN
from agent.measure.flaky import unsteady
from agent.measure.planting import Limits
from agent.measure.reading import NO_TESTS
from agent.measure.regressions import must_pass, regressions
from agent.measure.results import Results
from agent.measure.suite import Rules, copy_run, rules_for, run_suite
from agent.measure.trust import Trust
from agent.measure.warm import Start
from agent.task import Task
from sandboxes import Provider, Snapshot, TemplateLost

__all__ = ["CHEAP_S", "ENOUGH_REGRESSIONS", "Measurer", "find_baseline"]

log = logging.getLogger(__name__)

CHEAP_S = 20.0
"""A base state whose tests take no longer is measured twice, to find flaky tests."""
ENOUGH_REGRESSIONS = 3
"""A run that decides about a patch ends after so many: one refuses it, three tell a policy what it broke."""


class Measurer:
    """Measures states of one task. Thread-safe.

    `baseline` is the report of the base state, as `find_baseline` gives it. What is worth it is kept in `folder` for
    later sittings of the same run.
    """

    def __init__(
        self, provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport, folder: Path | None = None
    ) -> None:
        self._provider, self._task, self._base = provider, task, base
        self.rules = rules_for(provider, task, base, baseline)
        self._baseline = baseline
        self._must_pass = frozenset(must_pass(baseline))
        self._trust = Trust(baseline, lambda tests: self.measure_afresh(base, tests, start=Start.SESSION))
        self._results = Results(folder, _described(self.rules, task, base))
        self._results.put((base.digest,), baseline)

    @property
    def protection(self) -> Protection:
        """The files that decide what the tests say, for `agent.guard.inspect`."""
        return self.rules.protection

    def remember(self, snapshot: Snapshot, report: SuiteReport) -> None:
        """Take a report of an earlier sitting for what the tests say, where it is one of all tests."""
        if report.complete:
            self._results.put((snapshot.digest,), report)

    def known(self, snapshot: Snapshot) -> SuiteReport | None:
        """The report of all tests in this state, when it is known; it may have been cut short."""
        return self._results.get((snapshot.digest,))

    def measure(self, snapshot: Snapshot, tests: Sequence[str] = ()) -> SuiteReport:
        """How these tests end in this state; all of them when none is named. Known results are not found again."""
        return self.ask(snapshot, tests)[0]

    def ask(
        self, snapshot: Snapshot, tests: Sequence[str] = (), *, cut: bool = False, keep: bool = False
    ) -> tuple[SuiteReport, bool]:
        """As `measure`, and whether the tests had to be run for it.

        `cut`: the run may end after ENOUGH_REGRESSIONS. `keep`: later sittings shall know the result.
        """
        return self._results.find(
            (snapshot.digest, *tests), lambda: self._find(snapshot, tests, cut), whole=not cut, keep=keep
        )

    def _find(self, snapshot: Snapshot, tests: Sequence[str], cut: bool) -> SuiteReport:
        """By a copied run where that can be trusted."""
        start = self._trust.start(tuple(tests)) if self.rules.warm else Start.NEW
        try:
            report = self.measure_afresh(snapshot, tests, cut=cut, start=start)
        except TemplateLost as error:
            self._trust.lost(error)
            return self.measure_afresh(snapshot, tests, cut=cut)
        if start is Start.NEW or not cut or (report.valid and not regressions(self._baseline, report)):
            return report
        new = self.measure_afresh(snapshot, tests, cut=cut)  # no copied run refuses a patch that passes its goals
        self.distrust(unsteady([new, report]))
        return new

    def distrust(self, tests: Sequence[str]) -> None:
        """These tests ended differently in a copied run and in a new process: the latter counts from now on."""
        self._trust.distrust(tests)

    def measure_afresh(
        self, snapshot: Snapshot, tests: Sequence[str] = (), *, cut: bool = False, start: Start = Start.NEW
    ) -> SuiteReport:
        """As `measure`, by a run of the tests whatever is known.

        A run of named tests stops at the first that runs out of time; the rest is reported as skipped.

        Raises:
            sandboxes.TemplateLost: `start` asks for a copied run, and there is no template that works.
        """
        rules = replace(self.rules, limits=self._limits(tests, cut))
        if start is Start.NEW:
            report = run_suite(self._provider, self._task, snapshot, self._base, tests, rules)
            return report if self._baseline.outcomes else _without_tests(report)
        return copy_run(self._provider, snapshot, self._base, tests, rules, session=start is Start.SESSION)

    def measure_copies(self, snapshot: Snapshot, tests: Sequence[str], files: Mapping[str, bytes]) -> SuiteReport:
        """How these tests end in a new process where these files stand in the place of the state's own. Nothing of it
        is kept."""
        rules = replace(self.rules, limits=self._limits(tests, cut=False))
        return run_suite(self._provider, self._task, snapshot, self._base, tests, rules, files)

    def _limits(self, tests: Sequence[str], cut: bool) -> Limits:
        limits = self.rules.limits
        if cut:
            return replace(limits, must_pass=self._must_pass, regressions=ENOUGH_REGRESSIONS)
        return replace(limits, timeouts=1) if tests else limits


def _described(rules: Rules, task: Task, base: Snapshot) -> str:
    """All that decides what a run of the tests says, but for the state and which tests."""
    protection = rules.protection
    parts = (sorted(protection.test_files), protection.patterns, protection.roots, rules.adapter, rules.limits)
    return repr((base.digest, task.test_command, *parts))


def find_baseline(
    provider: Provider, task: Task, base: Snapshot, runs: int | None = None, *, untested: bool = False
) -> SuiteReport:
    """The report of the base state, before any edit. It is made `runs` times (None: twice when the tests are quick),
    and tests that do not end the same way every time are listed as flaky. One of the runs is copied from a template,
    where that can be; what differs there only is listed as unsafe. `untested`: there may be no tests; the report is
    empty then.

    Raises:
        MeasureError: the tests cannot be run at all; the message says what to change.
    """
    first = _first_run(provider, task, base, untested)
    if not first.outcomes:
        return first
    wanted = runs or (2 if first.duration_s <= CHEAP_S else 1)
    if wanted == 1:
        return first
    measurer = Measurer(provider, task, base, first)
    copied = _copied_run(measurer, base)
    new = [first, *(measurer.measure_afresh(base) for _ in range(wanted - (1 if copied is None else 2)))]
    different = unsteady([first, copied]) if copied is not None else ()
    if different:
        new.append(measurer.measure_afresh(base))
    flaky = unsteady(new)
    if flaky:
        log.info("%d flaky tests are set aside: %s", len(flaky), ", ".join(flaky[:5]))
    unsafe = tuple(test for test in different if test not in flaky)
    return replace(first, flaky=flaky, unsafe=None if copied is None else unsafe)


def _copied_run(measurer: Measurer, base: Snapshot) -> SuiteReport | None:
    """The report of the base state by a copied run; None where there is no template."""
    if measurer.rules.warm is None:
        return None
    try:
        return measurer.measure_afresh(base, start=Start.SESSION)
    except TemplateLost as error:
        log.info("tests run in new processes: %s", error)
        return None


def _without_tests(report: SuiteReport) -> SuiteReport:
    """The report; one of a run that found no tests is valid, where none are expected."""
    nothing = not report.outcomes and NO_TESTS in report.problem
    return replace(report, valid=True) if nothing else report


def _first_run(provider: Provider, task: Task, base: Snapshot, untested: bool) -> SuiteReport:
    """A valid run with generous limits, read by the best adapter that works for the command."""
    rules = rules_for(provider, task, base)
    report = run_suite(provider, task, base, base, rules=rules)
    if not report.valid and not report.outcomes and not _means_framework(report, task):
        report = run_suite(provider, task, base, base, rules=replace(rules, adapter=UNKNOWN))
    if untested:
        report = _without_tests(report)
    if not report.valid or report.exit_code in (126, 127):
        raise MeasureError(_complaint(report, task.test_command))
    return report


def _means_framework(report: SuiteReport, task: Task) -> bool:
    """Whether a run that was not reported was meant to be one of a framework: its exit code says too little then."""
    if report.timed_out or task.framework:
        return True
    return "pytest" in task.test_command or "pytest" in report.output


def _complaint(report: SuiteReport, command: str) -> str:
    last = next((line.strip() for line in reversed(report.output.split("\n")) if line.strip()), "no output")
    if report.exit_code in (126, 127):
        return (
            f"the test command {command!r} cannot be run ({last}); name another with --test, or install it with --setup"
        )
    if "No module named pytest" in report.output:
        return "pytest is not installed in the sandbox; install it with --setup 'pip install pytest'"
    if report.timed_out:
        return f"{command!r} took longer than {report.duration_s:.0f} s; name a quicker command with --test"
    if NO_TESTS in report.problem:
        return f"{command!r} collects no tests; name the tests to run with --test"
    remedy = "see --test, --setup and --test-framework"
    return f"{command!r} does not give a result that can be trusted: {report.problem} ({last}); {remedy}"
