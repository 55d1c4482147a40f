"""Runs made by hand, for tests: what a journal would hold of a search, without a sandbox behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.actions import Action, Observation
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.run.events import Added, Noted, Started
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace

P, F, E, T = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT
ENDS = {"t.py::a": F, "t.py::b": F, "t.py::c": P, "t.py::d": P}
"""How the tests of the base state end."""
GOALS = ("t.py::a", "t.py::b")
TASK = Task("hand", "It is wrong.", Workspace(mount="/w"), "pytest -q", GOALS)
OK = Observation("Done.")


def turn(*actions: Action | tuple[Action, Observation]) -> Step:
    """One turn, each action with what came of it; `OK` where nothing is said."""
    pairs = [each if isinstance(each, tuple) else (each, OK) for each in actions]
    return Step(tuple(action for action, _ in pairs), tuple(seen for _, seen in pairs))


class History:
    """A run that grows by what a test says has happened."""

    def __init__(self, directory: Path, **ends: Outcome) -> None:
        self.run = Run.open(directory)
        base = Snapshot("s0", "d0")
        self.run.record(Started(dump_task(TASK), {}, base))
        self.baseline = SuiteReport(ENDS | _named(ends), collected=4)
        self.run.record(Added(Node(0, (), (), base, self.baseline, PassingTests().evaluate(_case((), self.baseline)))))

    def add(
        self,
        parent: int,
        *turns: Step,
        label: str = "",
        report: SuiteReport | None = None,
        patch: bytes = b"",
        evaluation: Evaluation | None = None,
        same: bool = False,
        content: str = "",
        **ends: Outcome,
    ) -> int:
        """A child of `parent` whose tests end as the base state's but for those named; with its patch in the journal,
        as a discarded state leaves it. `content` tells its state from others."""
        path, number = self.run.tree.path(parent), len(self.run.tree)
        report = report or SuiteReport(self.baseline.outcomes | _named(ends), collected=4)
        evaluation = evaluation or PassingTests().evaluate(_case(path, report))
        state = path[-1].snapshot if same else Snapshot(f"s{number}", content or f"d{number}")
        self.run.record(Added(Node(number, (parent,), turns, state, report, evaluation, label=label)))
        self.run.record(Noted(number, "discarded", {"patch": self.run.journal.put_blob(patch)}))
        return number


def _case(path: tuple[Node, ...], report: SuiteReport) -> EvaluationInput:
    return EvaluationInput(TASK, path, report)


def _named(ends: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {f"t.py::{test}": end for test, end in ends.items()}
