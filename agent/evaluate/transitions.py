"""Shifts: which tests each node of a path makes pass, and which it breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.measure import SuiteReport
from agent.measure.ids import file_of
from agent.measure.regressions import must_pass
from agent.run.tree.node import Node, NodeId

__all__ = ["Transition", "transitions"]


@dataclass(frozen=True, slots=True)
class Transition:
    """What a node changed in the tests that count, against all that was known of them above it."""

    node: Node
    fixed: tuple[str, ...] = ()
    """Did not pass above, and pass here."""
    broken: tuple[str, ...] = ()
    """Passed above, and do not pass here."""
    since: Mapping[str, NodeId] = field(default_factory=dict)
    """Of those that were not run in the states just above: the first node of the path that may have changed the test.
    While goal tests fail, they alone are run as a rule."""

    @property
    def surely_mended(self) -> tuple[str, ...]:
        """Those that this node has fixed, and none above it."""
        return tuple(test for test in self.fixed if test not in self.since)

    @property
    def surely_broken(self) -> tuple[str, ...]:
        """Those that this node has broken, and none above it."""
        return tuple(test for test in self.broken if test not in self.since)

    @property
    def none(self) -> bool:
        """Whether it changed no test. Of a node whose tests did not run this is not known, and counts as none."""
        return not (self.fixed or self.broken)


def _watched(goals: Sequence[str], baseline: SuiteReport) -> tuple[str, ...]:
    """The tests that count: the goals, what else fails in the base state, and what no patch may break. No flaky ones
    but those that are named as goals."""
    failing = (test for test in baseline.failures if test not in baseline.flaky)
    return tuple(dict.fromkeys((*goals, *failing, *must_pass(baseline))))


def transitions(path: Sequence[Node], goals: Sequence[str]) -> Iterator[Transition]:
    """One for each node below the first, which is the base state. A report need not say something of every test: each
    is compared with what the last state of the path that ran it said."""
    baseline = path[0].report
    tests = _watched(goals, baseline)
    passing = {test: baseline.passed(test) for test in tests}
    last_run = dict.fromkeys(tests, 0)
    for place, node in enumerate(path[1:], 1):
        now = {test: node.report.passed(test) for test in tests if _tells(node.report, test, goals)}
        fixed = tuple(test for test, passes in now.items() if passes and not passing[test])
        broken = tuple(test for test, passes in now.items() if passing[test] and not passes)
        unsure = [test for test in (*fixed, *broken) if last_run[test] < place - 1]
        yield Transition(node, fixed, broken, {test: path[last_run[test] + 1].id for test in unsure})
        passing |= now
        last_run |= dict.fromkeys(now, place)


def _tells(report: SuiteReport, test: str, goals: Sequence[str]) -> bool:
    """Whether the report says how the test ended. A goal may be a class, or a test in a file that had not run."""
    if not report.valid:
        return False
    there = report.complete or test in report.outcomes or file_of(test) in report.outcomes
    return there or (test in goals and report.outcome(test) is not None)
