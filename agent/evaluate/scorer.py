"""Scoring: run a state's tests, evaluate the report, and check whether the patch can be trusted."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from agent.actions import Debug, Submit
from agent.errors import MeasureError
from agent.evaluate import guard
from agent.evaluate.goal_tests import resolve_goals
from agent.evaluate.hard_coded import hard_coded
from agent.evaluate.negative_controls import Controls
from agent.evaluate.own_tests import OwnTests
from agent.evaluate.reproduction import Finding, valued
from agent.evaluate.value import EvaluationInput, Value
from agent.evaluate.value_trace import describe
from agent.evaluate.verification import Assessment
from agent.measure import SuiteReport
from agent.measure.adapters.registry import OF_PYTHON
from agent.measure.flaky import with_retries
from agent.measure.ids import file_of
from agent.measure.measurer import Measurer
from agent.measure.naming import Names
from agent.measure.probing.probes import read_probe, run_probes
from agent.measure.probing.spectrum import Spectrum
from agent.measure.regressions import must_pass, regressions
from agent.measure.stages import StagedMeasurement
from agent.measure.timing import Timing
from agent.models import Ask
from agent.run.grade import declared
from agent.run.memo import Memo
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree
from agent.task import Task
from sandboxes import Provider, Snapshot


class StagedScorer:
    """Runs the goal tests, and the whole suite only if all of them pass. Thread-safe.

    `task.goal_tests` are resolved against the baseline (`agent.evaluate.goal_tests`). If the suite takes too long for
    `timing`, a state is measured by the tests that its change can reach (`agent.measure.scopes.scopes`), according to
    `spectrum`, which records what tests execute. `learned` is called with a report that has new facts about the base
    state. `left_s` returns the seconds left of the run. With `strict`, the whole suite also runs if only some goal
    tests pass, so that a gate knows what they broke (`agent.evaluate.improvement`). Results for later sessions are kept
    in `folder`. `ask` returns the function that asks models about a child of a node, `memo` is the run's memo and
    `tree` its tree: a value that asks models does so when a state is measured for the first time, and again if it is
    submitted with other declared tests. `foresee` returns the expected worth of a state (`agent.evaluate.foresight`),
    and is called before its tests run for the first time. `known` returns a report from elsewhere, if there is one,
    which replaces a test run.

    Raises:
        agent.errors.UsageError: a goal test does not exist, or passes already.
    """

    def __init__(
        self,
        provider: Provider,
        task: Task,
        base: Snapshot,
        baseline: SuiteReport,
        value: Value,
        *,
        folder: Path | None = None,
        spectrum: Callable[[], Spectrum] = Spectrum,
        timing: Timing | None = None,
        left_s: Callable[[], float] = lambda: math.inf,
        learned: Callable[[SuiteReport], None] = lambda report: None,
        strict: bool = False,
        ask: Callable[[NodeId], Ask] | None = None,
        memo: Memo | None = None,
        tree: Tree | None = None,
        foresee: Callable[[EvaluationInput], float | None] = lambda case: None,
        known: Callable[[Snapshot], SuiteReport | None] = lambda snapshot: None,
    ) -> None:
        timing = timing or Timing()
        self._measurer = Measurer(
            provider, task, base, baseline, folder, timing=timing, spectrum=cache(spectrum), learned=learned
        )
        self._measurer.cover_goals(task.goal_tests)
        self.task = replace(task, goal_tests=resolve_goals(task, self._baseline))
        self._provider, self._base = provider, base
        self._value = value
        self._ask, self._memo, self._tree, self._foresee, self._known = ask, memo, tree, foresee, known
        self._lock = threading.Lock()
        self._valuing: dict[str, threading.Lock] = {}
        self._worth: dict[str, dict[tuple[tuple[str, str], ...], Evaluation]] = {}
        """Evaluations, by the state's digest, then by the broken tests that its author declares, with the reasons."""
        self._strict, self._left_s = strict, left_s
        alone = bool(self.task.goal_tests) or self._measurer.by_scopes
        self._controls = Controls(provider, base, self._measurer.baseline, self._measurer, among_all=not alone)
        self.own = OwnTests(provider, self.task, base, self._baseline, self._measurer.rules)
        """The tests that states add."""
        self.root = value.evaluate(EvaluationInput(self.task, (), self._baseline))

    @property
    def _baseline(self) -> SuiteReport:
        """The current report of the base state."""
        return self._measurer.baseline.report

    def prepare(self) -> None:
        """Start in the background what later measurements will need."""
        self._measurer.prepare()

    def remember(self, node: Node) -> None:
        """Take a node's report from an earlier session as known."""
        self._measurer.remember(node.snapshot, node.report)

    def score(
        self, snapshot: Snapshot, path: tuple[Node, ...], submission: Submit | None = None
    ) -> tuple[SuiteReport, Evaluation, int]:
        """The report of a state below `path`, its evaluation, and how many test runs they took. `submission`: how it
        was submitted, if it was."""
        expected = self._expected(snapshot, path)
        trial = StagedMeasurement(self._measurer, self.task.goal_tests, snapshot, self._strict)
        with self._own_tests_beside(snapshot) as own:
            report = self._known(snapshot) or trial.report()
        case = replace(self._case(snapshot, path, report), submission=submission)
        if self._ask is not None:
            case = replace(case, ask=self._ask(path[-1].id))
        finding, runs = self.reproduction(snapshot, report)
        runs += own()
        if finding is not None:  # before the sources are changed, there is nothing to ask a model about
            case = replace(case, own_tests=finding.text, ask=None if finding.alone else case.ask)
        evaluation, more = self._valued(case, finding, snapshot)
        return report, evaluation.foreseen(expected), trial.runs + runs + more

    def _expected(self, snapshot: Snapshot, path: tuple[Node, ...]) -> float | None:
        """The expected worth of a state; None if there is no expectation, or if the state was measured already."""
        case = self._case(snapshot, path, path[-1].report)
        return self._foresee(case) if not self._worth.get(snapshot.digest) and case.patch() else None

    def score_again(self, node: Node, path: tuple[Node, ...]) -> tuple[SuiteReport, Evaluation, int]:
        """As `score`, by a fresh run of the tests that the node's report covers: the goal tests, or all."""
        report = self._measurer.repeat(node.snapshot, node.report, self.task.goal_tests)
        case = replace(self._case(node.snapshot, path, report), known=node.evaluation)
        finding, runs = self.reproduction(node.snapshot, report)
        evaluation, more = self._trusted(valued(self._value.evaluate(case), finding), node.snapshot, report)
        return report, evaluation, 1 + runs + more

    def run_tests(self, snapshot: Snapshot, tests: tuple[str, ...]) -> tuple[SuiteReport, int]:
        """The report of some tests, or all if none is named, for a policy to read, and how many test runs it took.
        Tests outside the task's own command are run by their path.

        Raises:
            agent.errors.MeasureError: there is no such test; nothing was run.
        """
        selection, by_command = self._named(snapshot, tests)
        if not by_command:
            report, ran = self.own.run(snapshot, selection)
            return report, int(ran)
        if selection:
            report, ran = self._measurer.report_on(snapshot, selection, keep=True)
            return report, int(ran)
        with self._own_tests_beside(snapshot) as own:
            report, ran = self._measurer.report_on(snapshot, keep=True)
        return report, int(ran) + own()

    @contextmanager
    def _own_tests_beside(self, snapshot: Snapshot) -> Iterator[Callable[[], int]]:
        """Run the tests that the state adds while the block runs long tests, so that their results are cached
        afterwards. Yields a function that returns how many runs this took."""
        if not self._measurer.by_scopes or not self._reproducible:
            yield lambda: 0
            return
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(self.own.look, snapshot)
            yield lambda: finding.runs if (finding := pending.result()) else 0

    def _named(self, snapshot: Snapshot, tests: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """The ids of the tests with these names, and whether the task's own command runs all of them.

        Raises:
            MeasureError: one of them does not exist.
        """
        outcomes, own = self._baseline.outcomes, self.own.files(snapshot) if tests else ()
        if self._baseline.adapter == "exit-code" or all(test in outcomes for test in tests):
            return tests, not any(file_of(test) in own for test in tests)
        names = Names(self._baseline, partial(self.own.path_in_workspace, snapshot), own)
        if self._baseline.adapter not in OF_PYTHON:  # new tests in other languages are not found by their file
            matches = [(names.meant(test), test) for test in tests]
            return tuple(ids[0] if len(ids) == 1 else test for ids, test in matches), True
        test_ids = tuple(dict.fromkeys(test_id for test in tests for test_id in names.found(test)))
        return test_ids, all(map(names.selected, test_ids))

    def put_back(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Existing test files that the state changes, and that are put back before tests are run."""
        changes = self._provider.changes(self._base, snapshot)
        return tuple(c.path for c in changes if c.kind == "modified" and self._measurer.protection.is_test(c.path))

    def debug(self, snapshot: Snapshot, request: Debug) -> str:
        """Describe the values in a run of one test. This takes one test run, with protected files as in the base state,
        except for added tests.

        Raises:
            agent.errors.MeasureError: the values cannot be shown; nothing was run.
        """
        if self._baseline.adapter != "pytest":
            raise MeasureError("values can only be seen in tests that pytest runs")
        own, (test_ids, by_command) = self.own.files(snapshot), self._named(snapshot, (request.test,))
        if len(test_ids) != 1:
            raise MeasureError(f"{request.test[:200]!r} is a folder: name one test")
        test = test_ids[0]
        probes = tuple(map(read_probe, request.probes))
        protection = self._measurer.protection
        changes = self._provider.changes(self._base, snapshot)
        put_back = [change.path for change in changes if protection.covers(change) and change.path not in own]
        rules = replace(self._measurer.rules, by_path=not by_command)
        probed = run_probes(self._provider, self.task, snapshot, self._base, put_back, test, probes, rules)
        return describe(probed, test, probes)

    def assess(self, snapshot: Snapshot, path: tuple[Node, ...], before: SuiteReport) -> Assessment:
        """Run the whole suite afresh, whatever is known, and again if the result contradicts `before`, the search's
        report of the same patch: only tests that fail both times count as failed."""
        report, runs = self._measurer.check(snapshot, self.task.goal_tests, self._left_s())
        surprises = self._surprises(before, report)
        if surprises:
            selection = surprises if self._measurer.by_scopes and report.valid else ()  # empty: all tests
            again, runs = self._measurer.measure_afresh(snapshot, selection), runs + 1
            report = with_retries(report, again, surprises) if report.valid else again
            self._measurer.distrust([test for test in surprises if not again.passed(test)])
        flags, more = self._flags(snapshot, report)
        flags += hard_coded(self._provider, self._base, snapshot, self.task, self._measurer.protection)
        evaluation = guard.cap(self._value.evaluate(self._case(snapshot, path, report)), self.root, flags)
        return Assessment(
            report,
            evaluation,
            improved=not evaluation.tampered and self._improves(report, evaluation),
            broken=regressions(self._baseline, report),
            remarks=tuple(str(flag) for flag in flags if flag.harmless),
            runs=runs + more,
        )

    def reproduction(self, snapshot: Snapshot, report: SuiteReport) -> tuple[Finding | None, int]:
        """The finding from the tests that the state adds, if no goal is known, and how many test runs that took."""
        finding = self.own.look(snapshot) if self._reproducible and report.valid else None
        return finding, finding.runs if finding else 0

    @property
    def _reproducible(self) -> bool:
        """Whether tests that a state adds count: no goal is known, and the runner can run them."""
        return not self.task.goal_tests and self.own.can_run

    def _valued(self, case: EvaluationInput, finding: Finding | None, snapshot: Snapshot) -> tuple[Evaluation, int]:
        """The state's evaluation, and the test runs that it took. If several workers reach a state at once, one
        evaluates it and the others wait."""
        runs, key = 0, tuple(declared(case.submission, regressions(self._baseline, case.report)).items())
        with self._lock:
            valuing = self._valuing.setdefault(snapshot.digest, threading.Lock())
        with valuing:
            known = self._worth.setdefault(snapshot.digest, {})
            if key not in known:
                evaluation = valued(self._value.evaluate(case), finding)
                known[key], runs = self._trusted(evaluation, snapshot, case.report)
            return known[key], runs

    def _case(self, snapshot: Snapshot, path: tuple[Node, ...], report: SuiteReport) -> EvaluationInput:
        """The input for an evaluation without models. It has the current report of the base state."""
        path = (replace(path[0], report=self._baseline), *path[1:]) if path else ()
        patch = cache(partial(self._provider.diff, self._base, snapshot))
        case = EvaluationInput(
            self.task,
            path,
            report,
            patch,
            state=snapshot.digest,
            tree=self._tree,
            patch_of=lambda node: self._provider.diff(self._base, node.snapshot),
        )
        return case if self._memo is None else replace(case, memo=self._memo)

    def _surprises(self, before: SuiteReport, report: SuiteReport) -> tuple[str, ...]:
        """Tests that count, passed before with a patch that broke nothing, and do not pass with it now."""
        if regressions(self._baseline, before):
            return ()
        required = (*self.task.goal_tests, *must_pass(self._baseline))
        return tuple(test for test in required if before.passed(test) and not report.passed(test))

    def _trusted(self, evaluation: Evaluation, snapshot: Snapshot, report: SuiteReport) -> tuple[Evaluation, int]:
        """The evaluation, capped at the base's if the patch tampers with the tests, and the test runs made to check
        that."""
        if evaluation.value <= self.root.value:
            return evaluation, 0
        flags, runs = self._flags(snapshot, report)
        return guard.cap(evaluation, self.root, flags), runs

    def _flags(self, snapshot: Snapshot, report: SuiteReport) -> tuple[tuple[guard.Flag, ...], int]:
        """The reasons not to trust a state's patch, and the test runs made to find them: none if its changes alone show
        enough."""
        flags = guard.inspect(self._provider, self._base, snapshot, self._measurer.protection)
        if any(not flag.harmless for flag in flags):
            return flags, 0
        more, runs = self._controls.look(snapshot, report)
        return (*flags, *more), runs

    def _improves(self, report: SuiteReport, evaluation: Evaluation) -> bool:
        """Whether nothing broke and, if there are goals, the state is worth more than the base."""
        unharmed = report.valid and report.conclusive and not evaluation.harm
        gained = not self.task.goal_tests or evaluation.value > self.root.value
        return unharmed and gained
