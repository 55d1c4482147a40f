"""Kill -9 at any event, with several workers: whatever was in flight is begun again, each proposal once."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent.run.events import Added, Failed
from agent.run.in_progress import TRIES
from agent.run.journal import read_events
from agent.run.run import Run
from tests.attacks.searching import EDITS, MORE, Plan, text
from tests.projects import BUG, means
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_interruption import ramify
from tests.test_killed import traces, wait_for
from tests.tiers import examples

pytestmark = pytest.mark.namespace

LIVELY = settings(max_examples=examples(3), deadline=None, phases=[Phase.explicit, Phase.generate])
EVERY_EDIT = [f"edit {n}" for n in range(EDITS)] + [f"edit {n} {m}" for n in range(EDITS) for m in range(MORE)]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, namespaces: Path) -> Path:
    return means(tmp_path_factory.mktemp("project") / "repo")


def search(repo: Path, run: Path, plan: Plan) -> str | None:
    """The status of a search in another process, which leaves nothing behind; None: it was killed."""
    command = [sys.executable, "-m", "tests.attacks.searching", repo, run, json.dumps(asdict(plan))]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, timeout=100, check=False)
    wait_for(lambda: not traces(run, str(run)))
    assert str(run).encode() not in Path("/proc/mounts").read_bytes()
    assert done.returncode in (0, -signal.SIGKILL)
    return done.stdout.decode() if done.returncode == 0 else None


def tried(run: Path) -> Counter[str]:
    """The edits that came to an end, with how often each did."""
    events = list(read_events(run / "journal.jsonl"))
    failed = [event.reason for event in events if isinstance(event, Failed)]
    return Counter([e.node.label for e in events if isinstance(e, Added) and e.node.parents] + failed)


@LIVELY
@given(workers=st.integers(2, 4), slow=st.integers(0, 2), kills=st.tuples(st.integers(9, 20), st.integers(1, 20)))
def test_a_search_that_is_killed_tries_in_the_end_what_one_tries_that_is_not(
    repo: Path, tmp_path_factory: pytest.TempPathFactory, workers: int, slow: int, kills: tuple[int, int]
) -> None:
    run = tmp_path_factory.mktemp("killed") / "run"
    first, second = kills
    assert search(repo, run, Plan(workers, dies_at=first, waits=slow)) is None
    search(repo, run, Plan(workers, dies_at=second))
    assert search(repo, run, Plan(workers)) == "no_patch"
    assert tried(run) == Counter(EVERY_EDIT)


@pytest.mark.slow
def test_the_only_right_edit_was_in_flight_when_the_process_was_killed(repo: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert search(repo, run, Plan(fix=1, waits=1, dies_at=20)) is None
    assert search(repo, run, Plan(fix=1)) == "solved"
    assert tried(run)["edit 1"] == 1
    assert max(tried(run).values()) == 1


@pytest.mark.slow
def test_a_proposal_that_kills_the_process_each_time_fails_at_last_and_takes_no_other_with_it(
    repo: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert [search(repo, run, Plan(workers=3, kills=1)) for _ in range(TRIES + 1)] == [None] * TRIES + ["no_patch"]
    failed = f"the process that carried it out was killed each time, {TRIES} in all"
    assert tried(run) == Counter([*EVERY_EDIT, failed]) - Counter(["edit 1", "edit 1 0"])


@pytest.mark.slow
def test_what_a_model_had_answered_a_line_of_work_is_not_asked_again(repo: Path, tmp_path: Path) -> None:
    """Although another line has ended since, which the model would be told of."""
    run, killed, stalled = tmp_path / "run", threading.Event(), threading.Event()
    first = itertools.count()

    def reply(body: Mapping[str, Any]) -> Reply:
        told = json.dumps(body["messages"])
        if "tools" not in body:
            return says("It changed a line.")
        if '"assistant"' not in told:
            return says("I change it.", ("edit", {"path": "means.py", "old": BUG, "new": text(next(first))}))
        if text(0).strip() in told and not killed.is_set():
            stalled.set()
            return says("never").fails("stall", 0)
        return says("It is done.", ("submit", {}))

    def asked() -> Counter[str]:
        return Counter(json.dumps([request["messages"], request.get("seed")]) for request in server.requests)

    with ScriptedServer(reply) as server:
        lines = ("search.name='best_of_n'", "search.n=2", "rollouts=2", "workers=2", "tournament.judge='none'")
        own = (f"model.base_url='{server.url}'", *lines, 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')
        options = [word for setting in own for word in ("-c", setting)]
        begin = (
            "solve",
            "--issue",
            "mean([]) fails",
            "--repo",
            repo,
            "--out",
            run,
            "--policy",
            "openai/tiny",
            *options,
        )
        process = ramify(*begin)
        wait_for(lambda: stalled.is_set() and (run / "journal.jsonl").read_bytes().count(b'"kind": "added"') == 2)
        process.kill()
        process.communicate()
        before = asked()
        killed.set()
        process = ramify("resume", run)
        process.communicate()
        repeated = [times for times in asked().values() if times > 1]
    assert max(before.values()) == 1
    assert repeated == [2], "what was not answered is asked again, and nothing else"
    assert next(first) == 2
    with Run.read(run) as opened:
        assert [node.submitted for node in opened.tree] == [False, True, True]
