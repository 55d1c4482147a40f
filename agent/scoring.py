"""Scoring: what a state's tests say, what that is worth, and whether the patch behind it can be trusted."""

from __future__ import annotations

import dataclasses

from agent import guard
from agent.goals import resolve_goals
from agent.measure import SuiteReport
from agent.measure.measurer import Measurer
from agent.task import Task
from agent.tree import Node
from agent.value import Evaluation, Value
from agent.verify import Judgement
from sandboxes import Provider, Snapshot

__all__ = ["GoalsFirst"]


class GoalsFirst:
    """Runs the goal tests, and the whole suite only where all of them pass. Thread-safe.

    `task.goal_tests` are resolved against the baseline: empty ones become all the tests that fail in the base state.

    Raises:
        agent.errors.UsageError: a goal test does not exist, or passes already.
    """

    def __init__(self, provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport, value: Value) -> None:
        self.task = dataclasses.replace(task, goal_tests=resolve_goals(task.goal_tests, baseline))
        self._provider = provider
        self._base = base
        self._value = value
        self._measurer = Measurer(provider, self.task, base, baseline)
        self.root = value.evaluate(self.task, (), baseline)

    def score(self, snapshot: Snapshot, path: tuple[Node, ...]) -> tuple[SuiteReport, Evaluation, int]:
        """The report of a state below `path`, its evaluation, and how many runs of the tests they took."""
        goals = self.task.goal_tests
        report, runs = self._measurer.measure(snapshot, goals), 1
        if goals and all(report.passed(goal) for goal in goals):
            report, runs = self._measurer.measure(snapshot), 2
        evaluation = self._value.evaluate(self.task, path, report)
        return report, self._trusted(evaluation, snapshot), runs

    def run_tests(self, snapshot: Snapshot, tests: tuple[str, ...]) -> SuiteReport:
        """Some tests, or all, for a policy to look at."""
        return self._measurer.measure(snapshot, tests)

    def judge(self, snapshot: Snapshot, path: tuple[Node, ...]) -> Judgement:
        """The whole suite, run afresh whatever is known."""
        report = self._measurer.measure_afresh(snapshot)
        evaluation = self._trusted(self._value.evaluate(self.task, path, report), snapshot)
        return Judgement(report, evaluation, improved=self._improves(report, evaluation))

    def _trusted(self, evaluation: Evaluation, snapshot: Snapshot) -> Evaluation:
        """The evaluation, capped at the base's when the patch tampers with the tests."""
        if evaluation.value <= self.root.value:
            return evaluation
        flags = guard.inspect(self._provider, self._base, snapshot, self._measurer.protection)
        return guard.cap(evaluation, self.root, flags)

    def _improves(self, report: SuiteReport, evaluation: Evaluation) -> bool:
        """Nothing broke, and more tests pass than before, where any failed before."""
        unharmed = report.valid and report.complete and not evaluation.parts.get("harm", 0.0)
        gained = not self.task.goal_tests or evaluation.value > self.root.value
        return unharmed and gained
