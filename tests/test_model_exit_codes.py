"""What a model's provider can do wrong, through the command itself: each fault that lasts ends a session with its exit
code and a run that can be resumed, and those that pass end in a patch.

It is one run of one small repository, a session for each fault, and the one that solves it; and a run of a model that
never calls a tool as it is told to.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.run.journal import read_events
from tests.clients import KEY, servers
from tests.commands import ramify
from tests.projects import BUG, FIX, means
from tests.scripted_server import Reply, fails, says

pytestmark = pytest.mark.namespace

SILENCE_S = 2
"""An answer that has begun may be silent for so long."""
RIGHT = says("That is it.", ("edit", {"path": "means.py", "old": BUG, "new": FIX}), ("run_tests", {}))
MISNAMED = says("I look.", ("viwe", {"path": "means.py"}))
TRUNCATED = says("I mend.", ("edit", '{"path": "means.py", "old": "    if'), finish_reason="length")
LASTING = {
    "a refused key": (fails(401, f"bad key {KEY}"), 4, "the provider refuses the key"),
    "a model nobody knows": (fails(404, "no such model"), 3, "no such model"),
    "no credit": (fails(429, "quota", code="insufficient_quota"), 4, "no credit left"),
    "too many requests": (fails(429, retry_after="3600"), 4, "it asks to wait 3600 s"),
    "an outage": (fails(500, retry_after="3600"), 4, "it asks to wait 3600 s"),
}
"""The answer to everything that is asked, the exit code, and words of the message. Each session goes on with the run
of the one before."""
UNREADABLE = "answers that cannot be read"
PASSING = {
    "429": fails(429, retry_after="0"),
    "500": fails(500),
    "stall": RIGHT.fails("stall", 4),
    "cut": RIGHT.fails("cut", 5),
    "not JSON": Reply(b"{not json"),
    "empty choices": Reply(b'{"choices": []}'),
    "a wrong name": MISNAMED,
    "cut arguments": TRUNCATED,
}


def looks(number: int) -> Reply:
    """An answer that is no end yet, and like no other."""
    return says("Looking.", ("search", {"pattern": f"word{number}"}))


@dataclass
class Told:
    """All sessions of the run."""

    ended: dict[str, subprocess.CompletedProcess[str]]
    """By the fault; the last one by `solved`. The other run by `UNREADABLE`."""
    asked: int
    """Questions of the last session."""
    run: Path


@pytest.fixture(scope="module")
def told(namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("sessions")
    run, repo, replies = folder / "run", means(folder / "repo"), list[Reply]()
    env = {**os.environ, "OPENAI_API_KEY": KEY, "NO_COLOR": "1"}

    def answer(body: Mapping[str, Any]) -> Reply:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    with servers() as serve:
        server = serve(answer)
        settings = [f"model.base_url={server.url}", "model.price=[2, 10]", f"model.idle_s={SILENCE_S}"]
        settings += ["sandbox.kind=namespace", "model.tool_calls=native", "measure.baseline_runs=1"]
        options = [word for setting in settings for word in ("-c", setting)]
        task: Sequence[object] = (
            "--issue",
            "mean([]) divides by zero",
            "--repo",
            repo,
            "--test",
            "python3 -m pytest -q",
            "--goal-failing",
        )
        solve = ["solve", *task, "--policy", "openai/tiny", "--search", "linear", *options, "--json", "--out"]
        ended = {}
        for name, (reply, _, _) in LASTING.items():
            replies[:] = [reply]
            ended[name] = ramify(["resume", run, "--json"] if ended else [*solve, run], cwd=folder, env=env)
        replies[:] = [MISNAMED, TRUNCATED] * 20
        ended[UNREADABLE] = ramify([*solve, folder / "other"], cwd=folder, env=env)
        before = len(server.requests)
        replies[:] = [each for n, fault in enumerate(PASSING.values()) for each in (fault, looks(n))] + [RIGHT]
        ended["solved"] = ramify(["resume", run, "--json"], cwd=folder, env=env)
        yield Told(ended, len(server.requests) - before, run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "words"),
    [*((name, *facts[1:]) for name, facts in LASTING.items()), (UNREADABLE, 5, "4 answers in a row")],
)
def test_a_fault_that_lasts_ends_with_its_exit_code_and_says_why(told: Told, name: str, code: int, words: str) -> None:
    done = told.ended[name]
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert words in json.loads(done.stdout)["error"]
    assert json.loads(done.stdout)["status"] == "no_patch"
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr


@pytest.mark.slow
def test_faults_that_pass_end_in_a_patch_of_the_same_run(told: Told) -> None:
    done = told.ended["solved"]
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["status"], facts["verified"]) == ("solved", True)
    assert FIX in Path(facts["patch_path"]).read_text()
    assert told.asked >= 2 * len(PASSING) + 1


@pytest.mark.slow
def test_what_is_asked_again_is_shown_a_line_each(told: Told) -> None:
    lines = [line for line in told.ended["solved"].stderr.splitlines() if "attempt 2 of 8" in line]
    assert any("openai/tiny: 500: " in line for line in lines)


def test_a_server_that_is_not_there_ends_the_run_at_once_with_its_address(namespaces: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.2", 0)) as closed:
        address = f"http://127.0.0.2:{closed.getsockname()[1]}"
    env = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    env |= {"XDG_STATE_HOME": str(tmp_path)}
    options = ["--policy", "openai/tiny", "-c", f"model.base_url={address}/v1", "-c", "sandbox.kind=namespace"]
    done = ramify(["solve", "--issue", "x", *options, "--json"], cwd=means(tmp_path / "repo"), env=env)
    assert done.returncode == 4, done.stderr
    assert f"no connection to {address}: [Errno 111] Connection refused" in done.stderr
    assert "attempt" not in done.stderr
    assert "no model read the issue" not in done.stderr
    assert json.loads(done.stdout)["stop"] == "failed"
    with servers() as serve:
        server = serve(lambda body: says("I give up."))
        again = ramify(["resume", "--base-url", server.url, "--json"], cwd=tmp_path / "repo", env=env)
    assert "no connection" not in again.stderr
    assert json.loads(again.stdout)["spent"]["propose"]["model_calls"] > 0
    assert server.keys[0] == "Bearer none"


def test_a_server_that_never_answers_is_named_when_the_time_is_up(namespaces: Path, tmp_path: Path) -> None:
    with servers() as serve:
        server = serve(lambda body: RIGHT.fails("stall", 0))
        options = ["--policy", "openai/tiny", "-c", f"model.base_url={server.url}", "-c", "sandbox.kind=namespace"]
        options += ["--max-seconds", "6", "--json"]
        env = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
        done = ramify(["solve", "--issue", "x", *options], cwd=means(tmp_path / "repo"), env=env)
    assert done.returncode == 4, done.stderr
    assert "openai/tiny gave no answer before the time was up; check its server" in done.stderr
    told = json.loads(done.stdout)
    assert told["stop"] == "time"
    assert told["spent"]["propose"]["model_calls"] == 1
    assert told["spent"]["measure"]["model_calls"] == 0


@pytest.mark.slow
def test_all_sessions_are_in_one_journal_that_holds_no_key(told: Told) -> None:
    journal = told.run / "journal.jsonl"
    assert sum(event.kind == "ended" for event in read_events(journal)) == len(LASTING) + 1
    assert KEY not in journal.read_text()
