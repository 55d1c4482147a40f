"""Journals for the pages that a browser shows, written down whole: no search makes them, and nothing is synced."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from random import Random

from agent.actions import Edit, Observation, Shell
from agent.budget import Usage
from agent.files import write_atomically
from agent.measure import Outcome, SuiteReport
from agent.models import Completion
from agent.run.ballots import Ballot
from agent.run.commands import Order
from agent.run.events import Added, Asked, Ended, Failed, Merged, Noted, Remeasured, Round, Started, Steered, Voted
from agent.run.journal import encode
from agent.run.message_store import Passage
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from benchmarks.batch.batch import Attempt, Identity
from benchmarks.data.instances import Mode
from benchmarks.grading.verdicts import Verdict, patch_digest
from benchmarks.reports.site import Site
from benchmarks.reports.site_server import make_server
from sandboxes import Snapshot

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202e\ud800<!--"
"""Ends a script, runs one, breaks a line, turns the order of reading, is no Unicode and begins a comment."""
SUITE = ("test_a.py::test_sum", "test_a.py::test_product", f"test_a.py::test_name[{HOSTILE}]")


def write(directory: Path, events, *, torn: bytes = b"") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / "journal.jsonl", b"".join(map(encode, events)) + torn)
    return directory


def report(*failing: str, odd: str = HOSTILE) -> SuiteReport:
    outcomes = {test: Outcome.FAILED if test in failing else Outcome.PASSED for test in SUITE}
    return SuiteReport(outcomes, 0.5, len(outcomes), messages=dict.fromkeys(failing, f"assert 1 == 2 {odd}"))


def state(
    id: int, parents: tuple[int, ...], value: float, failing: tuple[str, ...] = (), *, odd: str = HOSTILE, **more
) -> Node:
    edit = Edit("calc.py", "return a - b\n", f"return a + {id}  # {odd}\n", line=7)
    step = Step((edit,), (Observation("done"),), f"I try {id}. {odd}", Usage(model_calls=1, tokens_in=50 * id))
    steps = more.pop("steps", (step,) if parents else ())
    snapshot = Snapshot(f"s{id}", f"digest-{id}")
    return Node(id, parents, steps, snapshot, report(*failing, odd=odd), Evaluation(value, value == 1.0), **more)


def because(at: int, rival: int | None = None) -> Choice:
    rivals = {"rival": rival, "rival_terms": {"score": 0.25}} if rival is not None else {}
    return Choice(at, reasons=(Reason(at, {"score": 0.75, "mean": 0.5}, among=3, **rivals),))


STARTED = Started(
    {"statement": f"# The sum is wrong {HOSTILE}\n\nadd(1, 2) gives -1.", "goal_tests": [SUITE[0]]},
    {"policy": {"name": "chat"}, "search": {"name": "mcts"}, "rollouts": 4, "model": {"key": "not for a page"}},
    Snapshot("s0", "digest-0"),
)


def asked(node: int, text: str, purpose: str) -> Asked:
    usage = Usage(model_calls=1, tokens_in=1000, tokens_out=20, cost_usd=0.25)
    return Asked("scripted", "r", Passage("", "", ()), {}, Completion(text, usage=usage), node, purpose)


def ranking() -> dict:
    def place(node: int, strength: float, solved: bool) -> dict:
        return {
            "node": node,
            "same": [],
            "rollouts": 1,
            "patch": "0" * 64,
            "solved": solved,
            "progress": 1.0 if solved else 0.5,
            "strength": strength,
            "checked": None,
        }

    return {
        "order": [place(4, 0.5, True), place(3, 0.3, False), place(2, 0.2, False)],
        "bracket": [
            [{"group": [[2, 1], [3, 2]], "winner": 3, "by": "votes"}, {"group": [[4, 0]], "winner": 4, "by": "bye"}],
            [{"group": [[3, 1], [4, 1]], "winner": 4, "by": "rule"}],
        ],
        "judge": "scripted",
        "votes": 5,
        "abstained": 0,
        "for_first_shown": 2,
        "confidence": 0.61,
        "error": "",
        "baselines": {"random": 2, "tests": 4},
    }


def told() -> list:
    """A run in two rounds to which everything happens once."""
    both = (SUITE[0], SUITE[2])
    return [
        STARTED,
        Added(state(0, (), 0.1, both)),
        asked(0, f"I would add. {HOSTILE}", "policy"),
        Added(state(1, (0,), 0.2, both, label=f"+ 1 {HOSTILE}", policy_id="chat"), 1.0, because(0)),
        Added(state(2, (1,), 0.5, (SUITE[2],), label="sum of two"), 2.0, because(1, 0)),
        Failed(1, "no answer", "", "chat", 3.0, because(1, 2)),
        Merged(0, 2, "the same sum", "chat", 4.0, because(0, 1)),
        Remeasured(2, Evaluation(0.6), report(), 5.0, Choice(2, act="measure")),
        Steered(Order("prune", 1)),
        Round(2, 3),
        Added(state(3, (0,), 0.0, SUITE, kind="strategy", label="worse"), 6.0, because(0)),
        Added(
            state(4, (3, 2), 1.0, kind="fuse", label="a merge of branches"), 7.0, Choice(3, "fuse", 2, because="both")
        ),
        Added(
            state(5, (4,), 0.0, steps=(Step((Shell("rm -r /"),), (Observation("no", ok=False, refused=True),)),)), 8.0
        ),
        Voted(Ballot((2, 3), 3, f"it reads better {HOSTILE}", "scripted")),
        Noted(0, "ranking-1", ranking()),
        Ended("solved", "SOLVED", 4, True, None, 9.0, {}),
    ]


def crowd(count: int) -> list:
    """A search that made so many states: some merged, some references, values that rise."""
    rng = Random(5)
    events: list = [STARTED, Added(state(0, (), 0.1, SUITE[:1]))]
    for number in range(1, count):
        parent = rng.randrange(max(0, number - 400), number) if rng.random() < 0.7 else rng.randrange(number)
        value = min(0.99, rng.random() * 0.5 + number / (2 * count))
        label = f"{rng.choice(['+ to -', '< to <=', 'swap arguments', 'guard'])} at calc.py:{number % 90}"
        events.append(
            Added(
                state(number, (parent,), value, SUITE[: number % 2], odd="", label=label),
                float(number),
                because(parent),
            )
        )
        if number % 50 == 0:
            events.append(Merged(rng.randrange(number), rng.randrange(1, number), "again", elapsed_s=float(number)))
    return events


def batch(folder: Path, *, seed: int = 0, resolved: int = 2, of: int = 3, mode: Mode = "hidden") -> Path:
    """A graded batch of so many instances, the first of which has a run that can be looked at."""
    identity = Identity("source", mode, "ramify/chat/mcts", "settings", seed)
    attempts = [
        Attempt(f"pkg__one-{n}", "done", mode, b"x", facts={"status": "solved", "nodes": n, "measurements": 5 * n})
        for n in range(1, of + 1)
    ]
    verdicts = [
        Verdict(each.instance_id, "resolved" if n < resolved else "unresolved", patch_digest(b"x"), mode, HOSTILE)
        for n, each in enumerate(attempts)
    ]
    write(folder / attempts[0].instance_id, told())
    (folder / "batch.json").write_text(json.dumps(asdict(identity)))
    (folder / "results.jsonl").write_text("".join(json.dumps(each.to_row()) + "\n" for each in attempts))
    rows = ({"key": str(n), **asdict(verdict)} for n, verdict in enumerate(verdicts))
    (folder / "preds.verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@contextmanager
def serving(folder: Path, *, refresh_s: int | None = None) -> Iterator[int]:
    """The pages of a folder by HTTP; the port."""
    with make_server(Site(folder, refresh_s), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
