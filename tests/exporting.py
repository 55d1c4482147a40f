"""Small recorded runs for exports: trees whose numbers can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agent.actions import Action, Edit, Observation, RunTests
from agent.analysis.minimize import NOTE, Shortened
from agent.learning.export import Exporter, NeedsAllRuns, Row
from agent.learning.export.registry import FORMATS, make
from agent.measure import Outcome, SuiteReport
from agent.models import Completion, Message
from agent.policy.chat.plans import telling
from agent.policy.chat.transcript import pack
from agent.run.events import Added, Asked, Noted, Started
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace
from tests.scripted import answer

TASK = Task(
    "means-1",
    "mean([]) divides by zero",
    Workspace(mount="/workspace"),
    "pytest -q",
    base="c0ffee",
    tags={"repo": "someone/means", "license": "MIT", "source_url": "https://example.org/means"},
)
TOOLS = [{"type": "function", "function": {"name": "edit", "parameters": {}}}]


def edit(text: str, *, ok: bool = True) -> Step:
    """A turn that no model took: one edit."""
    return Step((Edit("means.py", "0", text),), (Observation(f"Edited to {text}.", ok=ok),))


class Recorder:
    """Records the nodes of a run one by one."""

    def __init__(self, folder: Path, task: Task = TASK, **settings: Any) -> None:
        self.run = Run.open(folder)
        self.run.record(
            Started(dump_task(task), {"seed": 7, "search": {"name": "mcts"}, **settings}, Snapshot("s", "d"))
        )
        self.add(None, 0.1, (), report=SuiteReport(outcomes={"t.py::a": Outcome.FAILED}))

    def add(self, parent: int | None, value: float, steps: Sequence[Step], notes: str = "", **changes: Any) -> int:
        """A node of this value; 1 is solved."""
        number = len(self.run.tree)
        made = Node(
            id=number,
            parents=() if parent is None else (parent,),
            steps=tuple(steps),
            snapshot=Snapshot(f"s{number}", f"digest-{number}"),
            report=SuiteReport(),
            evaluation=Evaluation(value, solved=value == 1.0, notes=notes),
            policy_id="mutate/1",
            label=f"edit {number}",
        )
        if made.by_model:
            changes = {"patch": self.run.journal.put_blob(f"+ state {number}\n".encode()), **changes}
        self.run.record(Added(replace(made, **changes)))
        return number

    def note(self, node: int, key: str, data: Any) -> None:
        self.run.record(Noted(node, key, data))

    def asks(
        self,
        parent: int,
        prompt: Sequence[Message],
        said: Completion,
        *actions: Action,
        seen: Sequence[Observation] = (),
        tools: Sequence[Mapping[str, Any]] = TOOLS,
    ) -> Step:
        """A turn of a model that was given this prompt, recorded as its call is."""
        passage = self.run.conversations.shorten([list(tools), *prompt])
        self.run.record(Asked("tiny", passage.digest, passage, {"seed": 3}, said, parent, "policy"))
        observed = tuple(seen) or tuple(Observation("done") for _ in actions)
        return Step(actions, observed, pack([], said.message), policy_id="chat/tiny@1")

    def close(self) -> Run:
        self.run.close()
        return Run.read(self.run.journal.directory)


def small_tree(folder: Path) -> Run:
    """Edits without a model.

    0 (0.1) -- 1 (0.3) -- 3 (1.0, solved)
            \\          \\- 4 (0.1)
             \\ 2 (0.1)
    """
    made = Recorder(folder)
    made.add(0, 0.3, [edit("one")], notes="Still failing: t.py::a")
    made.add(0, 0.1, [edit("two")])
    made.add(1, 1.0, [edit("three")])
    made.add(1, 0.1, [edit("four")])
    return made.close()


def chat_tree(folder: Path) -> Run:
    """Two rollouts of a model that begin alike: they look at a file, and then part.

    0 (0.1) -- 1 (1.0, solved): looks, edits rightly
            \\- 2 (0.1): looks, edits wrongly
    """
    made = Recorder(folder)
    opening = [{"role": "system", "content": "Repair it."}, {"role": "user", "content": "It is broken."}]
    look = answer("Looking.", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
    looked = [*opening, look.message, {"role": "tool", "tool_call_id": "call_0", "content": "done"}]
    for value, new in ((1.0, "right"), (0.1, "wrong")):
        said = answer(new, ("edit", {"path": "a", "old_str": "x", "new_str": new}), ("run_tests", {}))
        said = replace(said, logprobs=(-0.5, -0.25))
        seen = (Observation("done"), Observation("FAILED", ok=value == 1.0))
        first = made.asks(0, opening, look, Edit("a", "", "x"))
        second = made.asks(0, looked, said, Edit("a", "x", new), RunTests(), seen=seen)
        made.add(0, value, [first, second], policy_id="chat/tiny@1")
    return made.close()


def failing_call(folder: Path) -> Run:
    """A solved path whose first edit failed."""
    made = Recorder(folder)
    made.add(0, 1.0, [edit("bad", ok=False), edit("good")])
    return made.close()


def shortened(folder: Path) -> Run:
    """Four edits, of which `ramify shorten` found that the first is not needed."""
    made = Recorder(folder)
    made.add(0, 0.3, [edit("away"), edit("back")])
    made.add(1, 1.0, [edit("right"), edit("last")])
    found = Shortened(((1, 1), (2, 0), (2, 1)), (("a",), ("b",), ("c",)), of=4, tried=2)
    made.note(2, NOTE, asdict(found))
    return made.close()


PLANS = "Plan 1: the sum\n1. look at sum\n\nPlan 2: the count\n1. look at count"


def planned(folder: Path) -> Run:
    """Two plans that a model drew, of which the second was followed to a solved state."""
    made = Recorder(folder)
    passage = made.run.conversations.shorten([[], {"role": "user", "content": "Write plans."}])
    made.run.record(Asked("tiny", "r", passage, {"seed": 1}, answer(PLANS), 0, "policy"))
    for value, cause in ((0.1, "sum"), (1.0, "count")):
        told = telling({"cause": f"the {cause}", "steps": [f"look at {cause}"]}, first=True)
        step = edit(cause)
        given = pack([{"role": "user", "content": told}], answer("ok").message)
        made.add(0, value, [Step(step.actions, step.observations, given)])
    return made.close()


def rows(run: Run, name: str, **options: Any) -> list[Row]:
    """The rows of a format, refusals included."""
    exporter: Exporter = make(name, {key: json.dumps(value) for key, value in options.items()})
    if isinstance(exporter, NeedsAllRuns) and exporter.needs_all_runs:
        exporter.collect(run)
    form = FORMATS[name].form or (lambda row: row)
    return [row if "skipped" in row else form(row) for row in exporter(run)]


def said(message: Message) -> str:
    """What a message says or edits, in short."""
    calls = message.get("tool_calls") or ()
    return "".join(str(call["function"]["arguments"].get("new_str", "")) for call in calls) or str(message["content"])
