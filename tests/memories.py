"""Runs on disk that no sandbox made, for tests of what is remembered of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.actions import Edit
from agent.measure import Outcome, SuiteReport
from agent.run.events import Added, Ended, Event, Noted, Started, Summarised
from agent.run.rollouts import Summary
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace
from tests.trees import node

ZERO = "E   ZeroDivisionError: division by zero\nmeans.py:12: ZeroDivisionError"
PATCH = b"--- a/means.py\n+++ b/means.py\n@@ -9 +9 @@\n-    if len(numbers) < 0:\n+    if len(numbers) <= 0:\n"


def task(statement: str, **changes: object) -> Task:
    """A task about a repository that is not there."""
    given = {"id": f"task of {statement[:30]}", "statement": statement, "test_command": "pytest"} | changes
    return Task(workspace=Workspace(path=Path("nowhere")), **given)  # type: ignore[arg-type]


def report(failures: Mapping[str, str] = {}, passes: Sequence[str] = ()) -> SuiteReport:
    """A run of the tests, with what the failing ones said."""
    outcomes = dict.fromkeys(passes, Outcome.PASSED) | dict.fromkeys(failures, Outcome.FAILED)
    return SuiteReport(outcomes, collected=len(outcomes), messages=dict(failures))


def state(
    id: int,
    parent: int | None,
    value: float,
    measured: SuiteReport,
    label: str = "",
    *,
    changes: tuple[str, str] | None = None,
    parts: Mapping[str, float] | None = None,
    notes: str = "",
) -> Node:
    """A measured state; `changes` is what its one edit took out and put in."""
    steps = () if changes is None else (Step((Edit("means.py", *changes),), ()),)
    worth = Evaluation(value, value == 1.0, dict(parts or {}), notes)
    return replace(node(id, parent, steps=steps), report=measured, evaluation=worth, label=label)


BROKEN = report({"t.py::zero": ZERO}, ["t.py::some"])
WHOLE = report(passes=["t.py::zero", "t.py::some"])
REPAIR = (
    state(0, None, 0.1, BROKEN, "base"),
    state(1, 0, 1.0, WHOLE, "changed means.py: widened the comparison", changes=("< 0", "<= 0")),
)


def recorded(
    directory: Path,
    about: Task,
    *,
    states: Sequence[Node] = REPAIR,
    status: str = "solved",
    stop: str = "SOLVED",
    verified: bool = True,
    verdict: Mapping[str, object] | None = None,
    insights: Sequence[str] = (),
    choices: Mapping[int, Choice] | None = None,
    ended: bool = True,
) -> Path:
    """A run directory in which these states were recorded, and how it ended."""
    best = states[-1].id if status != "no_patch" else None
    with Run.open(directory) as run:
        events: list[Event] = [Started(dump_task(about), {}, Snapshot(f"base-{about.id}", "base"))]
        events += [Added(each, choice=(choices or {}).get(each.id)) for each in states]
        if verified or verdict is not None:
            note = {"patch": run.journal.put_blob(PATCH), "solved": status == "solved", "improved": True, "why": ""}
            events.append(Noted(states[-1].id, "verdict", note | dict(verdict or {})))
        if insights:
            events.append(Summarised(Summary(states[-1].id, "scripted", "solved", insights=tuple(insights))))
        if ended:
            patch = run.journal.put_blob(PATCH) if best is not None else None
            events.append(Ended(status, stop, best, verified, patch, 1.0, {"passed": 2, "failed": 0}))
        for event in events:
            run.record(event)
    return directory
