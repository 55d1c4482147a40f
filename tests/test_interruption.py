"""Kill -9 at any time: the run goes on as if nothing had happened, and the checkout never knew of it. A signal that
asks the program to end is answered at once, however long a model would take."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from agent.run.events import Added, Spent
from agent.run.journal import read_events
from tests.clients import KEY, servers
from tests.projects import QUICK, means, quick_means
from tests.scripted_server import fails, responds, says, worded
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace


ENDS_S = 10
"""What a busy machine may take for what is to take two seconds; no deadline of a model is as short."""
NEVER = {
    "no first token": ("openai/tiny", [], says("never").fails("stall", 0)),
    "a stream that stalls": ("openai/tiny", [], says("a long answer").fails("stall", 4)),
    "a wait that was asked for": ("openai/tiny", [], fails(429, retry_after="200")),
    "a response that stalls": ("openai/tiny", ["-c", "model.api=responses"], responds(worded("a")).fails("stall", 3)),
    "a hosted model": ("hosted_vllm/tiny", [], says("never").fails("stall", 0)),
    "a hosted Claude": ("anthropic/claude-sonnet-4-5", [], says("never").fails("stall", 0)),
    "several workers": ("openai/tiny", ["-c", "workers=3"], says("never").fails("stall", 0)),
}
"""How a model may never answer: its name, settings, and what its server does."""


def ramify(*arguments, background=False):
    """The command, in a process of its own. `background`: as a shell that is no terminal's starts what it does not wait
    for."""
    environment = {**os.environ, "NO_COLOR": "1", "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    command = [sys.executable, "-m", "agent", *map(str, arguments)]
    return subprocess.Popen(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command] if background else command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def solve(repo, run):
    command = ("--issue", "mean([]) divides by zero", "--repo", repo, "--test", "python3 -m pytest -q", "--seed", "3")
    env = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}', "-c", "measure.baseline_runs=1")
    return ramify("solve", *command, *env, "--out", run, "--json")


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def tree_of(run):
    """What a tree consists of, without the times that no two sessions share."""
    nodes = [e.node for e in read_events(run / "journal.jsonl") if isinstance(e, Added)]
    return [(n.id, n.parents, n.label, n.state_hash, n.value, n.report.outcomes) for n in nodes]


def begun(journal, nodes):
    """Whether a search has made so many nodes, and a journal."""
    told = journal.read_bytes() if journal.exists() else b""
    return told != b"" and told.count(b'"added"') >= nodes


def contents(repo):
    return {
        str(p.relative_to(repo)): (p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in repo.rglob("*")
    }


def children_of(session):
    """Living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry))
    return found


def runs(command):
    """Whether a process on this machine runs a command."""
    wanted = b"\0".join(map(str.encode, command.split()))
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
            if file.read().strip(b"\0") == wanted:
                return True
    return False


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return quick_means(tmp_path_factory.mktemp("project") / "repo")


@pytest.fixture(scope="module")
def undisturbed(repo, tmp_path_factory):
    """The tree and the result of a search that nobody interrupts."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    result = finish(solve(repo, run))
    return tree_of(run), result


@pytest.mark.slow
@pytest.mark.parametrize("nodes_before", [0, 1, 3])
def test_a_killed_search_goes_on_to_the_same_tree_and_patch(repo, undisturbed, tmp_path, nodes_before):
    whole, expected = undisturbed
    run = tmp_path / "run"
    before = contents(repo)
    process = solve(repo, run)
    journal = run / "journal.jsonl"
    while process.poll() is None and not begun(journal, nodes_before):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
    deadline = time.monotonic() + 100
    while (left := children_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    result = finish(ramify("resume", run, "--json"))
    assert tree_of(run) == whole
    assert contents(repo) == before
    with open(result["patch_path"], "rb") as again, open(expected["patch_path"], "rb") as first:
        assert again.read() == first.read()
    keys = ("status", "verified", "nodes", "baseline", "final")
    assert {k: result[k] for k in keys} == {k: expected[k] for k in keys}
    spent = [e for e in read_events(journal) if isinstance(e, Spent) and e.what == "tests"]
    assert len(spent) == len(whole) - 1


@pytest.mark.parametrize(
    ("never", "number", "background"),
    slow_but(
        [("no first token", signal.SIGINT, True)],
        [
            *((never, signal.SIGTERM, False) for never in NEVER),
            ("no first token", signal.SIGINT, False),
            ("no first token", signal.SIGINT, True),
        ],
    ),
)
def test_a_signal_is_answered_soon_while_a_model_is_waited_for(repo, tmp_path, never, number, background):
    name, settings, reply = NEVER[never]
    asked = threading.Event()

    def answer(body):
        asked.set()
        return reply

    with servers() as serve:
        url = serve(answer).url
        url = url.removesuffix("/v1") if name.startswith("anthropic") else url
        model = ("--policy", name, "-c", f"model.base_url={url}", "-c", "model.price=[2, 10]")
        project = ("--issue", "mean([]) divides by zero", "--repo", repo, "--test", QUICK)
        sandbox = ("-c", "sandbox.kind=namespace", "-c", "measure.baseline_runs=1")
        command = ("solve", *project, *model, *sandbox, *settings, "--out", tmp_path / "run", "--json")
        process = ramify(*command, background=background)
        try:
            assert asked.wait(100), "no model was asked"
            process.send_signal(number)
            out, err = process.communicate(timeout=ENDS_S)
        finally:
            process.kill()
    assert process.returncode == 128 + number, err.decode()
    told = json.loads(out)
    assert (told["status"], told["stop"]) == ("no_patch", "interrupted")
    assert children_of(process.pid) == []


@pytest.mark.parametrize(("during", "number"), [("a setup", signal.SIGTERM), ("the first test run", signal.SIGINT)])
def test_a_signal_ends_what_comes_before_the_search_at_once(tmp_path, during, number):
    repo, waits = means(tmp_path / "repo"), f"sleep 1000.{os.getpid()}"
    how = ("--setup", waits) if during == "a setup" else ("--test", f"{waits}; python3 -m pytest -q")
    kind = ("-c", "sandbox.kind=namespace")
    process = ramify("fix", "--repo", repo, *kind, *how, "--out", tmp_path / "run", "--json")
    try:
        deadline = time.monotonic() + 100
        while not runs(waits) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=ENDS_S)
    finally:
        process.kill()
    assert process.returncode == 128 + number, err.decode()
    told = json.loads(out)
    assert (told["status"], told["stop"], told["nodes"]) == ("no_patch", "interrupted", 0)
    assert b"the search ended before the first test run had finished" in err
    assert children_of(process.pid) == []
    assert not runs(waits)


@pytest.mark.slow
def test_a_signal_gives_the_best_diff_as_it_is_and_a_later_session_verifies_it(tmp_path):
    repo = quick_means(tmp_path / "repo")
    fix = says(None, ("edit", {"path": "means.py", "old_str": "< 0:", "new_str": "<= 0:"}), ("run_tests", {}))
    waiting, answers = threading.Event(), iter([fix])

    def answer(body):
        if (reply := next(answers, None)) is not None:
            return reply
        waiting.set()
        return says("never").fails("stall", 0)

    with servers() as serve:
        model = ("--policy", "openai/tiny", "-c", f"model.base_url={serve(answer).url}", "--sandbox", "namespace")
        project = ("--issue", "mean([]) divides by zero", "--repo", repo, "--test", QUICK)
        process = ramify("solve", *project, *model, "--out", tmp_path / "run", "--json")
        try:
            assert waiting.wait(100), "the conversation did not continue"
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=ENDS_S)
        finally:
            process.kill()
    assert process.returncode == 128 + signal.SIGTERM, err.decode()
    told = json.loads(out)
    assert (told["status"], told["verified"], told["stop"]) == ("improved", False, "interrupted")
    with open(told["patch_path"]) as patch:
        assert "+    if len(numbers) <= 0:" in patch.read()
    again = ramify("resume", tmp_path / "run", "--json", "--max-seconds", "0.001")
    out, _ = again.communicate(timeout=300)
    assert again.returncode == 124
    assert (json.loads(out)["status"], json.loads(out)["verified"]) == ("improved", True)
