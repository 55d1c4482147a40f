"""A tournament that is killed in the middle, its judge behind a real server: only the missing votes are asked for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from agent.budget import Budget
from agent.engine.model_calls import ModelGateway
from agent.engine.recorder import Recorder
from agent.models.openai import OpenAIModel
from agent.run.events import Added, Asked, Started, Voted
from agent.run.journal import read_events
from agent.run.run import Run
from agent.solver.tournament import comparisons, rank
from agent.solver.tournament.judges import ModelJudge
from sandboxes import Snapshot
from tests import trees
from tests.candidates import TASK, candidate
from tests.scripted_server import ScriptedServer, says

N, VOTES, ANSWERED = 5, 3, 7
SCRIPT = (
    "import sys, pathlib; from tests.test_tournament_killed import vote; vote(pathlib.Path(sys.argv[1]), sys.argv[2])"
)
FIRST = says(json.dumps({"winner": "A", "reason": "It came first."}))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    with Run.open(tmp_path / "run") as made:
        made.record(Started({}, {}, Snapshot("0", "0")))
        made.record(Added(trees.node(0)))
        for number in range(1, N + 1):
            made.record(Added(trees.node(number, 0)))
    return tmp_path / "run"


def vote(directory, url):
    """Hold a tournament in a run; who won, and why votes are missing."""
    with Run.open(directory) as opened, closing(OpenAIModel("openai/tiny", base_url=url)) as model:
        judge = ModelJudge(model, ModelGateway(Recorder(opened, Budget(max_calls=100))).at(None, "judge"))
        found = rank(
            TASK,
            [candidate(node) for node in range(1, N + 1)],
            judge,
            votes=VOTES,
            known=opened.ballots,
            record=lambda ballot: opened.record(Voted(ballot)),
        )
    return found.winner.node, found.error


def events(run, kind):
    return [event for event in read_events(run / "journal.jsonl") if isinstance(event, kind)]


def test_after_a_kill_in_the_middle_of_a_bracket_only_the_missing_votes_are_asked_for(run):
    stalled = threading.Event()

    def answer(body):
        if len(server.requests) > ANSWERED:
            stalled.set()
            return FIRST.fails("stall", 0)
        return FIRST

    with ScriptedServer(answer) as server:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(run), server.url])
        assert stalled.wait(100)
        process.send_signal(signal.SIGKILL)
        process.wait()
        asked = server.requests[:ANSWERED]
    assert len(events(run, Voted)) == ANSWERED
    with ScriptedServer(lambda body: FIRST) as server:
        _, error = vote(run, server.url)
        assert len(server.requests) == VOTES * comparisons(N, 2) - ANSWERED
        asked += server.requests
    assert error is None
    ballots = [event.ballot for event in events(run, Voted)]
    assert max(Counter((frozenset(each.group), each.vote) for each in ballots).values()) == 1
    assert len({json.dumps([each["messages"], each["seed"]]) for each in asked}) == len(ballots)


@pytest.mark.slow
def test_an_answer_that_was_paid_for_and_not_yet_counted_is_not_asked_for_again(run):
    with ScriptedServer(lambda body: FIRST) as server:
        found = vote(run, server.url)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert b'"voted"' in lines.pop()
    (run / "journal.jsonl").write_bytes(b"".join(lines))
    with ScriptedServer([]) as server:
        assert vote(run, server.url) == found
        assert server.requests == []
    assert len(events(run, Voted)) == len(events(run, Asked)) == VOTES * comparisons(N, 2)
