"""A run's store holds the states of its nodes and no others, whatever was tried on the way to them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent import Settings, solve
from agent.actions import Edit, RunTests, Shell, Submit, Write
from agent.budget import Budget
from agent.engine.components import Components
from agent.errors import PolicyError
from agent.evaluate.value.tests import PassingTests
from agent.policy import Proposal
from agent.run.journal import read_events
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.settings import Choice, SandboxSettings
from agent.solver.solve import solve as search
from sandboxes import SnapshotMissing
from sandboxes.guest.sweeping import is_dead
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted, edits
from tests.projects import BUG, FIX, commit, means, task
from tests.scripted_server import ScriptedServer, says

pytestmark = pytest.mark.namespace

SAME = "    if len(numbers) < -1:\n"
PLAIN = SandboxSettings(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, kind="namespace")
EXAMPLE = Path(__file__).parents[1] / "examples" / "next_permutation"


def stored(run: Path) -> set[str]:
    return {path.stem for path in (run / "store" / "states").glob("*.json")}


def layers(run: Path) -> list[str]:
    return [path.name for path in (run / "store" / "layers").iterdir()]


def held(run: Path) -> set[str]:
    with Run.open(run) as opened:
        assert opened.started is not None
        return {opened.started.base.id, *(node.snapshot.id for node in opened.tree)}


def attempt(tmp_path, policy):
    with Run.open(tmp_path / "run") as run, namespace_provider(tmp_path / "run" / "store") as provider:
        parts = Components(provider, policy, BestFirst(), PassingTests(), Budget())
        result = search(task(means(tmp_path / "repo")), parts, run)
    return result, tmp_path / "run"


@pytest.mark.slow
def test_mutations_of_an_example_leave_a_state_for_each_node(tmp_path):
    files = {str(p.relative_to(EXAMPLE / "repo")): p.read_text() for p in (EXAMPLE / "repo").rglob("*") if p.is_file()}
    repo = commit(tmp_path / "repo", files)
    given = task(repo, statement=(EXAMPLE / "issue.md").read_text())
    result = solve(given, Settings(sandbox=PLAIN, workers=2), tmp_path / "run")
    assert result.status == "solved"
    assert stored(tmp_path / "run") == held(tmp_path / "run")
    assert len(layers(tmp_path / "run")) <= result.nodes


@pytest.mark.slow
def test_turns_on_the_way_to_a_node_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
    look, wrong = ("shell", {"command": "echo x > note; ls"}), ("edit", {"path": "means.py", "old": BUG, "new": SAME})
    right, tests = ("edit", {"path": "means.py", "old": SAME, "new": FIX}), ("run_tests", {})
    script = [says("a", look), says("b", wrong, look), says("c", tests), says("d", look), says("e", right, tests)]
    with ScriptedServer(script) as server:
        settings = Settings(
            policy=Choice(name="openai/tiny"), search=Choice(name="linear"), sandbox=PLAIN,
            model={"base_url": server.url},
        )  # fmt: skip
        result = solve(task(means(tmp_path / "repo")), settings, tmp_path / "run")
    assert (result.status, result.nodes) == ("solved", 3)
    assert stored(tmp_path / "run") == held(tmp_path / "run")


@pytest.mark.slow
def test_what_timed_out_or_was_known_already_leaves_nothing_and_a_turn_before_a_failure_its_state(tmp_path):
    def answer(position):
        if len(position.path) > 1 or position.index > 3:
            return Proposal(())
        if position.index == 0:
            return Proposal((Write("kept.txt", "1"), Shell("sleep 60", timeout_s=0.3), Edit("means.py", BUG, SAME)))
        if position.index == 1 and not position.steps:
            return Proposal((Shell("touch here"), RunTests()), final=False)
        if position.index == 1:
            raise PolicyError("unreadable")
        if position.index == 2:
            return Proposal((Shell("touch there; rm there"), Write("kept.txt", "1"), Edit("means.py", BUG, SAME)))
        return Proposal((Edit("means.py", BUG, FIX), Submit("done")))

    result, run = attempt(tmp_path, Scripted(answer))
    assert (result.status, result.nodes) == ("solved", 4)
    assert stored(run) == held(run)


@pytest.mark.slow
def test_a_verified_patch_leaves_nothing_of_its_verification(tmp_path):
    result, run = attempt(tmp_path, edits(SAME, FIX))
    assert result.verified
    assert stored(run) == held(run)
    assert len(list((run / "store" / "repositories").iterdir())) == 1


@pytest.mark.slow
def test_a_state_that_a_power_cut_damaged_costs_itself_alone(tmp_path):
    _, run = attempt(tmp_path, edits(SAME, FIX))
    with Run.open(run) as opened:
        damaged, whole = opened.tree[1].snapshot, opened.tree[2].snapshot
    (run / "store" / "states" / f"{damaged.id}.json").write_bytes(b"")
    with namespace_provider(run / "store") as provider:
        with pytest.raises(SnapshotMissing, match="damaged"), provider.at(damaged):
            pass
        with provider.at(whole) as box:
            assert FIX in box.read("means.py").decode()


@pytest.mark.slow
def test_what_a_killed_run_had_frozen_is_gone_when_it_goes_on(tmp_path):
    repo, run = means(tmp_path / "repo"), tmp_path / "run"
    command = [sys.executable, "-m", "agent", "solve", "--issue", "x", "--repo", str(repo), "--out", str(run),
               "--sandbox", "namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = run / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and sum(1 for _ in read_events(journal)) >= 4):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
    with Run.open(run) as opened:
        base = opened.started.base
    with namespace_provider(run / "store") as provider, provider.at(base) as box:
        box.write("orphan", b"nobody's")
        orphan = box.snapshot().id
    assert orphan in stored(run)
    done = subprocess.run([sys.executable, "-m", "agent", "resume", str(run)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert stored(run) == held(run)


def test_a_guest_is_dead_whose_directory_is_free_or_removed_meanwhile(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert not is_dead(str(tmp_path))
    os.close(descriptor)
    assert is_dead(str(tmp_path))
    assert is_dead(str(tmp_path / "removed"))
