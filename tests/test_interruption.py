"""Kill -9 at any time: the run goes on as if nothing had happened, and the checkout never knew of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from agent.events import Added, Spent
from agent.journal import read_events
from tests.projects import means

pytestmark = pytest.mark.namespace


def ramify(*arguments):
    """The command, in a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "agent", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def solve(repo, run):
    command = ("--issue", "mean([]) divides by zero", "--repo", repo, "--test", "python3 -m pytest -q", "--seed", "3")
    env = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')
    return ramify("solve", *command, *env, "--out", run, "--json")


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def tree_of(run):
    """What a tree consists of, without the times that no two sittings share."""
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


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return means(tmp_path_factory.mktemp("project") / "repo")


@pytest.fixture(scope="module")
def undisturbed(repo, tmp_path_factory):
    """The tree and the result of a search that nobody interrupts."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    result = finish(solve(repo, run))
    return tree_of(run), result


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
