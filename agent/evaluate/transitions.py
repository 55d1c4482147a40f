"""Test transitions: which tests each node of a path makes pass, and which it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.measure import SuiteReport
from agent.measure.ids import file_of
from agent.measure.regressions import must_pass
from agent.run.tree.node import Node, NodeId


@dataclass(frozen=True, slots=True)
class Transition:
    """The tests that count and whose result changed at a node, compared with the last results above it."""

    node: Node
    fixed: tuple[str, ...] = ()
    """Tests that did not pass above and pass here."""
    broken: tuple[str, ...] = ()
    """Tests that passed above and do not pass here."""
    since: Mapping[str, NodeId] = field(default_factory=dict)
    """For tests that were not run in the states just above: the first node of the path that may have changed the test.
    While goal tests fail, usually only they are run."""

    @property
    def surely_fixed(self) -> tuple[str, ...]:
        """Tests that this node fixed, and no node above it."""
        return tuple(test for test in self.fixed if test not in self.since)

    @property
    def surely_broken(self) -> tuple[str, ...]:
        """Tests that this node broke, and no node above it."""
        return tuple(test for test in self.broken if test not in self.since)

    @property
    def none(self) -> bool:
        """Whether no test changed. This also holds for a node whose tests did not run."""
        return not (self.fixed or self.broken)


def _watched(goals: Sequence[str], baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that count: the goals, other tests that fail in the base state, and those that no patch may break.
    Flaky tests count only as goals."""
    failing = (test for test in baseline.failures if test not in baseline.flaky)
    return tuple(dict.fromkeys((*goals, *failing, *must_pass(baseline))))


def transitions(path: Sequence[Node], goals: Sequence[str]) -> Iterator[Transition]:
    """The transition of each node below the first, which is the base state. A report need not cover every test: each
    result is compared with that of the last state on the path that ran the test."""
    baseline = path[0].report
    tests = _watched(goals, baseline)
    passing = {test: baseline.passed(test) for test in tests}
    last_run = dict.fromkeys(tests, 0)
    for place, node in enumerate(path[1:], 1):
        now = {test: node.report.passed(test) for test in tests if _covers(node.report, test, goals)}
        fixed = tuple(test for test, passes in now.items() if passes and not passing[test])
        broken = tuple(test for test, passes in now.items() if passing[test] and not passes)
        unsure = [test for test in (*fixed, *broken) if last_run[test] < place - 1]
        yield Transition(node, fixed, broken, {test: path[last_run[test] + 1].id for test in unsure})
        passing |= now
        last_run |= dict.fromkeys(now, place)


def _covers(report: SuiteReport, test: str, goals: Sequence[str]) -> bool:
    """Whether the report has the test's result. A goal may be a class, or a test in a file that did not run before."""
    if not report.valid:
        return False
    listed = report.complete or test in report.outcomes or file_of(test) in report.outcomes
    return listed or (test in goals and report.outcome(test) is not None)
