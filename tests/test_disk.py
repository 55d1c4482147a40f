"""A disk that is or becomes full: said before work begins, survived with the best patch so far, gone on from later."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.actions import Edit, Shell
from agent.budget import Budget, Stop
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy import Proposal
from agent.run.events import Exhausted
from agent.run.eviction import DISCARDED, make_room
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes import Limits, SnapshotMissing, StoreFull
from sandboxes.forking.disk_space import require
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import BUG, FIX, quick_means, quick_task

pytestmark = pytest.mark.namespace

SMALL = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, to mount a small disk")
MORE = "import os\n\n\ndef test_more():\n    assert os.path.exists('more')\n"


def session(repo, run, answer):
    """One session of a run."""
    with Run.open(run) as opened, namespace_provider(run / "store") as provider:
        parts = Components(provider, Scripted(answer), BestFirst(), PassingTests(), Budget())
        return solve(quick_task(repo), parts, opened)


def filling(command):
    """The first child is better; every later one leaves something large behind."""

    def answer(position):
        if len(position.path) > 1:
            return Proposal(())
        return Proposal(
            (Shell(command.replace("NUMBER", str(position.index))) if position.index else Edit("means.py", BUG, FIX),)
        )

    return answer


def finishing(position):
    """The right child of whichever node is asked about."""
    there = position.box.read("means.py").decode()
    edit = (Edit("means.py", BUG, FIX),) if BUG in there else ()
    return Proposal((*edit, Shell("touch more")))


def two_sessions(repo, run, command):
    """A session that meets the end of the disk, and one after the disk has grown; what a test wants to know of both."""
    first = session(repo, run, filling(command))
    subprocess.run(["mount", "-o", "remount,size=4g", run.parent], check=True)
    with Run.open(run) as opened:
        failures = sum(len(opened.tree.failures(node.id)) for node in opened.tree)
    second = session(repo, run, finishing)
    return {
        "first": [
            first.status,
            first.verified,
            first.stop is Stop.FAILED,
            type(first.error).__name__,
            len(first.patch) > 0,
        ],
        "failures": failures,
        "message": str(first.error),
        "second": [second.status, second.verified],
    }


def on_a_small_disk(tmp_path, command):
    repo, small = quick_means(tmp_path / "repo"), tmp_path / "small"
    (repo / "test_more.py").write_text(MORE)
    small.mkdir()
    program = (
        f"import json, sys; from pathlib import Path; from tests.test_disk import two_sessions\n"
        f"print(json.dumps(two_sessions(Path({str(repo)!r}), Path({str(small)!r}, 'run'), {command!r})))"
    )
    mount = f'mount -t tmpfs -o size=530m none {small} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", sys.executable, "-c", program],
        cwd=Path(__file__).parents[1], capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@SMALL
def test_a_disk_that_fills_ends_the_session_with_the_best_patch_and_the_run_goes_on_later(tmp_path):
    said = on_a_small_disk(tmp_path, "head -c 90000000 /dev/urandom > blobNUMBER")
    assert said["first"] == ["improved", True, True, "StoreFull", True]
    assert "MiB free" in said["message"]
    assert said["failures"] == 0
    assert said["second"] == ["solved", True]


@pytest.mark.slow
@SMALL
def test_a_patch_that_there_is_no_room_to_verify_is_given_as_unverified_and_verified_later(tmp_path):
    said = on_a_small_disk(
        tmp_path, "for i in $(seq 99); do head -c 9000000 /dev/zero > /tmp/part$i || exit; sleep 0.05; done"
    )
    assert said["first"] == ["improved", False, True, "StoreFull", True]
    assert said["second"] == ["solved", True]


def test_a_disk_without_room_is_named_with_the_figures_and_the_remedy(tmp_path):
    with pytest.raises(
        StoreFull, match=rf"the disk of {tmp_path}/new has \d+ MiB free, and it takes \d+ MiB; .*ramify clean"
    ):
        require(tmp_path / "new", 1 << 60, "it")


@pytest.mark.slow
def test_states_beyond_their_bound_end_the_session_unless_closed_nodes_make_room(tmp_path):
    """Node 4 is closed as well; it holds the state of the root, which is needed."""

    def answer(position):
        if len(position.path) > 1 or position.index > 3:
            return Proposal(())
        if position.index == 3:
            return Proposal((Edit("missing.py", "a", "b"),))
        return Proposal((Shell(f"head -c 5000000 /dev/urandom > blob{position.index}"),))

    repo, run = quick_means(tmp_path / "repo"), tmp_path / "run"
    with Run.open(run) as opened, namespace_provider(run / "store") as provider:
        parts = Components(provider, Scripted(answer), BestFirst(), PassingTests(), Budget())
        solve(quick_task(repo), parts, opened)
        assert [opened.tree.expandable(n) for n in range(1, 5)] == [False] * 4
    with Run.open(run) as opened, namespace_provider(run / "store", Limits(store_bytes=7 << 20)) as provider:
        blob = opened.tree[2].snapshot
        with provider.at(blob) as box:
            kept = box.read("blob1")
        make_room(provider, opened)
        with pytest.raises(SnapshotMissing, match="discarded"), provider.at(blob):
            pass
        notes = [opened.note(node.id, DISCARDED) for node in opened.tree]
        assert [note is not None for note in notes] == [False, True, True, True, False]
        assert len(opened.journal.get_blob(notes[2]["patch"])) > len(kept)
        make_room(provider, opened)
        assert opened.tree[4].snapshot == opened.tree.root.snapshot
        with provider.at(opened.tree.root.snapshot):
            pass


@pytest.mark.slow
def test_nothing_that_may_still_be_needed_is_given_up(tmp_path):
    def answer(position):
        if len(position.path) > 1 or position.index > 1:
            return Proposal(())
        blob = Shell(f"head -c 5000000 /dev/urandom > blob{position.index}")
        return Proposal((blob, Edit("means.py", BUG, FIX)) if position.index else (blob,))

    repo, run = quick_means(tmp_path / "repo"), tmp_path / "run"
    (repo / "test_more.py").write_text(MORE)
    with Run.open(run) as opened, namespace_provider(run / "store") as provider:
        parts = Components(provider, Scripted(answer), BestFirst(), PassingTests(), Budget(max_nodes=3))
        solve(quick_task(repo), parts, opened)
    with Run.open(run) as opened, namespace_provider(run / "store", Limits(store_bytes=3 << 20)) as provider:
        with provider.at(opened.tree.root.snapshot):
            pass  # a guest that can weigh
        better = opened.tree[2]
        opened.record(Exhausted(better.id))
        with pytest.raises(StoreFull, match="store_bytes"):
            make_room(provider, opened)
        with provider.at(better.snapshot) as box:
            assert box.exec(["test", "-e", "blob1"], timeout_s=100).exit_code == 0
