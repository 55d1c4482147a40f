"""The size of the journal of one branch after 50, 100 and 200 turns with a model, compared with a log of all requests.

Every turn has the same length, and its state is a node. No sandbox or server is needed, as only bytes count.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from agent.actions import Observation, View, schema
from agent.budget import Budget
from agent.engine.model_calls import ModelGateway
from agent.engine.recorder import Recorder
from agent.measure import SuiteReport
from agent.models import Message
from agent.models.scripted import ScriptedModel, answer
from agent.policy.chat.transcript import pack
from agent.run.events import Added
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from benchmarks.perf.bench import Bench
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_most
from sandboxes import Snapshot

TURNS = (50, 100, 200)
RESULT_BYTES = 4_000
GOAL = 4.5


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--result-bytes", type=int, default=RESULT_BYTES, metavar="N", help="what a turn's tool prints")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """One row: the sizes, and the ratio of 200 turns to 50."""
    with TemporaryDirectory(prefix="ramify-") as folder:
        began = process_time()
        sizes, whole = grow(Path(folder) / "run", TURNS, given.result_bytes)
        each_ms = (process_time() - began) / TURNS[-1] * 1000
    ours = f"{_listed(sizes)} KB; {each_ms:.1f} ms of processor a turn"
    what = f"the journal of {', '.join(map(str, TURNS))} turns"
    ratio = sizes[-1] / sizes[0]
    yield at_most(what, ours, 1, ratio, GOAL, "x for 4x the turns", usual=f"{_listed(whole)} KB")


def grow(directory: Path, turns: Sequence[int], result_bytes: int) -> tuple[list[int], list[int]]:
    """Take turns on one branch in a new run. Returns the bytes of the journal and of all requests after each number of
    turns."""
    model = ScriptedModel(lambda heard: answer("I look further.", ("view", {"path": f"pkg/{len(heard):05}.py"})))
    sizes, whole, requests = list[int](), list[int](), 0
    messages: list[Message] = [{"role": "system", "content": "s" * 2000}, {"role": "user", "content": "issue" * 400}]
    with Run.open(directory) as run:
        asker = ModelGateway(Recorder(run, Budget()))
        for turn in range(max(turns)):
            requests += len(json.dumps([schema(), messages]))
            said = asker.at(turn, "policy")(model, messages, schema(), seed=10**9 + turn)
            printed = f"{turn:05}".ljust(result_bytes, "x")
            step = Step((View(f"pkg/{len(messages):05}.py"),), (Observation(printed),), pack((), said.message))
            state = Snapshot(f"{turn:064}", f"{turn:064}")
            parents = (turn - 1,) if turn else ()
            run.record(Added(Node(turn, parents, (step,), state, SuiteReport(), Evaluation(0.5))))
            result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": printed}
            messages += [said.message, result]
            if turn + 1 in turns:
                sizes.append(run.journal.path.stat().st_size)
                whole.append(requests)
    return sizes, whole


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(f"{size / 1000:.0f}" for size in sizes)


if __name__ == "__main__":
    main(__doc__, options, rows)
