"""Measure the states of one task, once for each set of tests, and find the baseline that they are compared with."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.counting import counted
from agent.errors import MeasureError, NoSuchCommand
from agent.measure import SuiteReport
from agent.measure.adapters.registry import named_in
from agent.measure.adapters.running import UNKNOWN
from agent.measure.baseline import Baseline, joined
from agent.measure.flaky import inconsistent
from agent.measure.ids import file_of
from agent.measure.inside.wanted import covers
from agent.measure.naming import likely_file
from agent.measure.probing.spectrum import Spectrum
from agent.measure.protection import Protection
from agent.measure.reading import NO_TESTS, NOT_REPORTED
from agent.measure.regressions import must_pass, regressions
from agent.measure.results import Results
from agent.measure.scopes.scopes import Scope, Scopes, by_scopes, can_select
from agent.measure.suite import GENEROUS, Rules, calibrate, copy_run, rules_for, run_suite
from agent.measure.timing import Timing
from agent.measure.warm.plugins import Limits
from agent.measure.warm.runner import Start
from agent.measure.warm.trust import Trust
from agent.task import Task
from sandboxes import Provider, Snapshot, TemplateLost

log = logging.getLogger(__name__)

CHEAP_S = 20.0
"""If the tests of the base state take no longer than this, they run twice, to find flaky ones."""
ENOUGH_REGRESSIONS = 3
"""A run that decides about a patch ends after this many: one is enough to refuse the patch, three show a policy what
the patch broke."""
MANY = 1_000_000
LONG_TEST = 0.3
"""Share of the first run's time that one test may take, so that a sleeping test leaves time for the others."""
LISTING_S = 120.0
"""The smallest number of seconds that a first run gets to list the tests."""
ASKED_AGAIN = 200
"""If more tests than this fail in a run of all tests, the base state runs their files instead of the single tests."""


class Measurer:
    """Measures the states of one task. Thread-safe.

    `baseline` is the report of the base state from `find_baseline`; `learned` receives each report that extends it.
    Results worth keeping are stored in `folder` for later sessions of the same run. If a run of all tests takes longer
    than `timing` allows per state, each state is measured by its scope (`agent.measure.scopes.scopes`); `spectrum` is
    passed to `Scopes`.
    """

    def __init__(
        self,
        provider: Provider,
        task: Task,
        base: Snapshot,
        baseline: SuiteReport,
        folder: Path | None = None,
        *,
        timing: Timing | None = None,
        spectrum: Callable[[], Spectrum] = Spectrum,
        learned: Callable[[SuiteReport], None] = lambda report: None,
    ) -> None:
        self._provider, self._task, self._base = provider, task, base
        self._timing = timing or Timing()
        self.rules = rules_for(provider, task, base, baseline)
        if self._timing.jobs > 1:  # a copied run is a single process
            self.rules = replace(self.rules, limits=replace(self.rules.limits, jobs=self._timing.jobs), warm=None)
        self.baseline = Baseline(baseline, self._of_base, learned)
        self._trust = Trust(self.baseline, lambda tests: self.measure_afresh(base, tests, start=Start.SESSION))
        self._results = Results(folder, _cache_key(self.rules, task, base))
        self._results.put((base.digest,), baseline)
        self._needed_s, self._came_to_end = _needed_s(baseline), baseline.complete
        self._unmeasurable = baseline.timed_out and not can_select(baseline.adapter)
        self._scopes: Scopes | None = None
        if by_scopes(baseline, self._timing):
            self._scopes = Scopes(provider, base, self.baseline, self.rules.protection, self._timing, spectrum)

    @property
    def protection(self) -> Protection:
        """The files that decide how tests end, for `agent.evaluate.guard.inspect`."""
        return self.rules.protection

    @property
    def by_scopes(self) -> bool:
        """Whether a state is measured only by the tests that its change can reach."""
        return self._scopes is not None

    def prepare(self) -> None:
        """Start reading, in the background, what is needed to choose scopes."""
        if self._scopes is not None:
            self._scopes.prepare()

    def cover_goals(self, goals: Sequence[str]) -> None:
        """Run the files of these goal tests in the base state if its first run did not reach them."""
        if unknown := [goal for goal in goals if self.baseline.report.outcome(goal) is None]:
            files = self._scopes.test_files() if self._scopes is not None else ()
            self.baseline.cover(dict.fromkeys(filter(None, (likely_file(goal, files) for goal in unknown))))

    def remember(self, snapshot: Snapshot, report: SuiteReport) -> None:
        """Reuse a report from an earlier session if it covers all tests or the whole scope."""
        if report.conclusive:
            self._results.put((snapshot.digest,), report)

    def known(self, snapshot: Snapshot) -> SuiteReport | None:
        """Return the cached report of all tests in this state, or of its scope; None if there is none. The run may have
        been cut short."""
        return self._results.get((snapshot.digest,))

    def measure(self, snapshot: Snapshot, tests: Sequence[str] = ()) -> SuiteReport:
        """Return only the report of `report_on`."""
        return self.report_on(snapshot, tests)[0]

    def report_on(
        self, snapshot: Snapshot, tests: Sequence[str] = (), *, cut: bool = False, keep: bool = False
    ) -> tuple[SuiteReport, bool]:
        """Return how these tests end in this state, and whether they had to be run for that. Without `tests`: all
        tests, or the scope of the state. Cached results are reused.

        `cut`: the run may end after ENOUGH_REGRESSIONS. `keep`: store the result for later sessions.
        """
        return self._results.find(
            (snapshot.digest, *tests), lambda: self._find(snapshot, tests, cut), whole=not cut, keep=keep
        )

    def check(self, snapshot: Snapshot, goals: Sequence[str], left_s: float) -> tuple[SuiteReport, int]:
        """Run all tests without using cached results; return the report and the number of runs. If states are measured
        by scopes, the scope and the goal tests run first; all tests follow if nothing broke and enough of the run's
        `left_s` seconds remain.

        The report's `scope` says which tests were not run, and why.
        """
        if self._scopes is None:
            return self.measure_afresh(snapshot), 1
        report, runs = self._of_scope(snapshot, self._scopes.of(snapshot), cut=False, start=Start.NEW, more=goals), 1
        if not report.valid or regressions(self.baseline.report, report):
            return report, runs
        limit_s = self._final_s(left_s)
        if self._needed_s > limit_s:
            known = not math.isinf(self._needed_s)
            needed = f"all take about {self._needed_s:,.0f} s" if known else "how long all tests take is unknown"
            why = f"{needed}, and there are only {max(limit_s, 0):,.0f} s left for it"
            return replace(report, scope=f"{report.scope}; the others were not run: {why}"), runs
        whole = self._whole(snapshot, limit_s)
        if not whole.valid:
            return replace(report, scope=f"{report.scope}; a run of all tests gave no valid result: {whole.problem}"), 2
        return (whole if whole.complete else self._with_late(report, whole)), 2

    def _final_s(self, left_s: float) -> float:
        """Return the seconds for the final run of all tests. If the base state could finish such a run, there is always
        enough time for one."""
        limit_s = min(left_s, self._timing.final_s)
        return max(limit_s, self._limits(cut=False).run_s) if self._came_to_end and self._timing.final_s else limit_s

    def _whole(self, snapshot: Snapshot, limit_s: float) -> SuiteReport:
        """Run all tests. Then run those that fail and have no result in the base state there, too."""
        whole = self._run(snapshot, (), replace(self._limits(cut=False), run_s=limit_s))
        failed = whole.failures if len(whole.failures) <= ASKED_AGAIN else tuple(map(file_of, whole.failures))
        self.baseline.cover(dict.fromkeys(failed))
        return whole

    def _with_late(self, report: SuiteReport, whole: SuiteReport) -> SuiteReport:
        """Combine the scope's report with a run of all tests that ran out of time."""
        both = joined(whole, report)
        late = sum(both.late.values())
        return replace(both, scope=f"all tests but {late:,}, for which the time was too short")

    def _find(self, snapshot: Snapshot, tests: Sequence[str], cut: bool) -> SuiteReport:
        """Measure, with a copied run if that can be trusted."""
        scope = None if tests or self._scopes is None else self._scopes.of(snapshot)
        if scope is not None:
            return self._copied_if_trusted(
                scope.tests, cut, lambda start: self._of_scope(snapshot, scope, cut=cut, start=start)
            )
        return self._copied_if_trusted(
            tuple(tests), cut, lambda start: self.measure_afresh(snapshot, tests, cut=cut, start=start)
        )

    def _copied_if_trusted(self, tests: tuple[str, ...], cut: bool, run: Callable[[Start], SuiteReport]) -> SuiteReport:
        """Return the report of a run, which is copied from a template if that can be trusted."""
        start = self._trust.start(tests) if self.rules.warm else Start.NEW
        try:
            report = run(start)
        except TemplateLost as error:
            self._trust.lost(error)
            return run(Start.NEW)
        if start is Start.NEW:
            self._trust.record_new_run(tests, report)
        if start is Start.NEW or not cut or (report.valid and not regressions(self.baseline.report, report)):
            return report
        new = run(Start.NEW)  # a copied run does not refuse a patch: its regressions have to be confirmed
        self.distrust(inconsistent([new, report]))
        return new

    def _of_scope(
        self, snapshot: Snapshot, scope: Scope, *, cut: bool, start: Start, more: Sequence[str] = ()
    ) -> SuiteReport:
        """Return the report of a scope and of `more` tests. Tests without a result in the base state run there
        first."""
        self.baseline.cover(scope.tests)
        baseline = self.baseline.report
        known = [test for test in scope.tests if "::" not in test or baseline.outcome(test) is not None]
        requested = (*known, *(test for test in more if not covers(known, test)))
        if not requested:
            return SuiteReport(complete=False, adapter=baseline.adapter, scope=scope.describe(SuiteReport(), baseline))
        limits = replace(self._limits(cut=cut), run_s=self._timing.scope_s)
        report = self._run(snapshot, requested, limits, start)
        if self._scopes is not None:
            self._scopes.learn(report)
        self.baseline.cover(report.failures)
        broken = regressions(self.baseline.report, report)
        if broken and self.baseline.doubt(known, broken) and report.left_out:
            report = self._run(snapshot, requested, replace(limits, regressions=MANY), start)
        return replace(report, scope=scope.describe(report, self.baseline.report))

    def _of_base(self, tests: Sequence[str]) -> SuiteReport:
        """Run these tests in the base state. Some may not exist there: the functions of a scope are read from the
        source, and a state may have other parameters."""
        report = self._run(self._base, tests, replace(GENEROUS, run_s=self._timing.scope_s, jobs=self._timing.jobs))
        return replace(report, valid=True, problem="") if report.problem.startswith(NOT_REPORTED) else report

    def distrust(self, tests: Sequence[str]) -> None:
        """Never copy a run of these tests again: they ended differently in a copied run and in a new process."""
        self._trust.distrust(tests)

    def measure_afresh(
        self, snapshot: Snapshot, tests: Sequence[str] = (), *, cut: bool = False, start: Start = Start.NEW
    ) -> SuiteReport:
        """Run these tests, or all if none is named, even if their result is cached.

        A run of named tests without `cut` stops at the first timeout; the other tests are reported as skipped.

        Raises:
            sandboxes.TemplateLost: `start` asks for a copied run, and no template works.
        """
        limits = self._limits(cut=cut)
        report = self._run(snapshot, tests, replace(limits, timeouts=1) if tests and not cut else limits, start)
        if tests or not report.late or not report.valid:
            return report
        late = counted(sum(report.late.values()), "test was", "tests were")
        problem = f"the run was ended after {report.duration_s:.0f} s; {late} not run"
        return replace(report, valid=False, problem=problem)

    def repeat(self, snapshot: Snapshot, report: SuiteReport, goals: Sequence[str]) -> SuiteReport:
        """Run again the tests that a report of this state covers: all tests, its scope and the goal tests, or only the
        goal tests."""
        if report.scope and self._scopes is not None:
            return self._of_scope(snapshot, self._scopes.of(snapshot), cut=False, start=Start.NEW, more=goals)
        return self.measure_afresh(snapshot, () if report.complete else goals)

    def _run(self, snapshot: Snapshot, tests: Sequence[str], limits: Limits, start: Start = Start.NEW) -> SuiteReport:
        if self._unmeasurable:  # each run would take as long as the first, and say as little
            return SuiteReport(adapter=self.baseline.report.adapter, problem=self.baseline.report.problem)
        rules = replace(self.rules, limits=limits)
        if start is not Start.NEW:
            return copy_run(self._provider, snapshot, self._base, tests, rules, session=start is Start.SESSION)
        report = run_suite(self._provider, self._task, snapshot, self._base, tests, rules)
        return report if self.baseline.report.outcomes else _without_tests(report)

    def measure_copies(self, snapshot: Snapshot, tests: Sequence[str], files: Mapping[str, bytes]) -> SuiteReport:
        """Run these tests in a new process with `files` in place of the state's own. The result is not cached."""
        limits = self._limits(cut=False)
        rules = replace(self.rules, limits=replace(limits, timeouts=1) if tests else limits)
        return run_suite(self._provider, self._task, snapshot, self._base, tests, rules, files)

    def _limits(self, *, cut: bool) -> Limits:
        """Limits derived from the current baseline."""
        baseline = self.baseline.report
        limits = replace(calibrate(baseline), jobs=self._timing.jobs)
        if not cut:
            return limits
        return replace(limits, must_pass=frozenset(must_pass(baseline)), regressions=ENOUGH_REGRESSIONS)


def _cache_key(rules: Rules, task: Task, base: Snapshot) -> str:
    """Everything that decides the result of a test run, apart from the state and the choice of tests."""
    protection = rules.protection
    parts = (sorted(protection.test_files), protection.patterns, protection.roots, rules.adapter, rules.limits)
    return repr((base.digest, task.test_command, *parts))


def find_baseline(
    provider: Provider,
    task: Task,
    base: Snapshot,
    runs: int | None = None,
    *,
    untested: bool = False,
    timing: Timing | None = None,
) -> SuiteReport:
    """Return the report of the base state, before any edit. The tests run `runs` times (None: twice if they are quick);
    those that end differently are listed as flaky. One run is copied from a template if possible; tests that end
    differently only in that run are listed as unsafe. A run that exceeds `timing` is stopped, and the tests it did not
    reach are listed as late. With `untested`, a task may have no tests, or none that finish in time; its report is then
    empty and says why.

    Raises:
        MeasureError: the tests cannot be run at all; the message says what to change.
    """
    timing = timing or Timing()
    first = _first_run(provider, task, base, timing, untested)
    if not first.outcomes or first.late:
        return first
    requested = runs or (2 if first.duration_s <= CHEAP_S else 1)
    if requested == 1:
        return first
    measurer = Measurer(provider, task, base, first, timing=timing)
    copied = _copied_run(measurer, base)
    new = [first, *(measurer.measure_afresh(base) for _ in range(requested - (1 if copied is None else 2)))]
    different = inconsistent([first, copied]) if copied is not None else ()
    if different:
        new.append(measurer.measure_afresh(base))
    flaky = inconsistent(new)
    if flaky:
        log.info("%d flaky tests are set aside: %s", len(flaky), ", ".join(flaky[:5]))
    unsafe = tuple(test for test in different if test not in flaky)
    return replace(first, flaky=flaky, unsafe=None if copied is None else unsafe)


def _copied_run(measurer: Measurer, base: Snapshot) -> SuiteReport | None:
    """Measure the base state with a copied run; return None if there is no template."""
    if measurer.rules.warm is None:
        return None
    try:
        return measurer.measure_afresh(base, start=Start.SESSION)
    except TemplateLost as error:
        log.info("tests run in new processes: %s", error)
        return None


def _without_tests(report: SuiteReport) -> SuiteReport:
    """Return the report, marked as valid if its only problem is that there are no tests."""
    nothing = not report.outcomes and NO_TESTS in report.problem
    return replace(report, valid=True) if nothing else report


def _first_run(provider: Provider, task: Task, base: Snapshot, timing: Timing, untested: bool) -> SuiteReport:
    """Run all tests with generous limits, and read the results with the best adapter that works for the command."""
    rules = rules_for(provider, task, base)
    rules = replace(rules, limits=_first_limits(task, rules.adapter, timing))
    report = run_suite(provider, task, base, base, rules=rules)
    if not report.valid and not report.outcomes and not _means_framework(report, task):
        report = run_suite(provider, task, base, base, rules=replace(rules, adapter=UNKNOWN))
    if untested:
        report = _without_tests(report)
        if report.timed_out:
            return _too_long(report, task.test_command)
    if report.exit_code in (126, 127):
        raise NoSuchCommand(_unusable(report, task.test_command))
    if not report.valid:
        raise MeasureError(_complaint(report, task.test_command))
    return report


def _first_limits(task: Task, adapter: str, timing: Timing) -> Limits:
    """Return the limits of the first run. A runner that reports late tests stops by itself when its time is up. One
    that cannot select tests always runs all of them, so it gets the time of the longest run. An unknown command may
    have either kind of runner."""
    limits, longest_s = replace(GENEROUS, jobs=timing.jobs), max(timing.whole_s, timing.final_s)
    limits = replace(limits, late_s=LONG_TEST * timing.whole_s, grace_s=max(limits.grace_s, LISTING_S - timing.whole_s))
    if not can_select(adapter):
        return replace(limits, run_s=longest_s)
    known = task.framework or named_in(task.test_command)
    grace_s = limits.grace_s if known else max(limits.grace_s, longest_s - timing.whole_s)
    return replace(limits, run_s=timing.whole_s, grace_s=grace_s)


def _too_long(report: SuiteReport, command: str) -> SuiteReport:
    """Return the report of a killed run. It names no test, but the issue can still be worked on."""
    problem = f"{command!r} was ended after {report.duration_s:.0f} s, before it had reported any test"
    return replace(report, outcomes={}, valid=True, complete=False, problem=problem)


def _needed_s(baseline: SuiteReport) -> float:
    """Estimated seconds for a run of all tests, from the part that the first run reached; infinite if it reached
    none."""
    late, done = sum(baseline.late.values()), len(baseline.outcomes)
    return baseline.duration_s * (done + late) / done if done else math.inf


def _means_framework(report: SuiteReport, task: Task) -> bool:
    """Whether a run without a report was meant for a test framework; its exit code is then not enough."""
    if report.timed_out or task.framework:
        return True
    return "pytest" in task.test_command or "pytest" in report.output


def _complaint(report: SuiteReport, command: str) -> str:
    if "No module named pytest" in report.output:
        return (
            "pytest is not installed in the sandbox; install it with --setup 'pip install pytest', or name an "
            "environment that has it with --python DIR"
        )
    if report.timed_out:
        return f"{command!r} took longer than {report.duration_s:.0f} s; name a quicker command with --test"
    if NO_TESTS in report.problem:
        return f"{command!r} collects no tests; name the tests to run with --test"
    if unknown := re.search(r"error: unrecognized arguments: (.*)", report.output):
        return (
            f"{command!r} has options that pytest does not recognise: {unknown[1].strip()}; install their plugins, "
            "for example with --setup 'pip install pytest-cov', or give a command without them with --test"
        )
    remedy = "see --test, --setup and --test-framework"
    problem = f"{report.problem} ({_last_line(report)})"
    return f"{command!r} does not give a result that can be trusted: {problem}; {remedy}"


def _unusable(report: SuiteReport, command: str) -> str:
    remedy = "name another with --test, or install it with --setup"
    return f"the test command {command!r} cannot be run ({_last_line(report)}); {remedy}"


def _last_line(report: SuiteReport) -> str:
    return next((line.strip() for line in reversed(report.output.split("\n")) if line.strip()), "no output")
