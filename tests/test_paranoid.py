"""The paranoid way: every fork is compared with what was frozen, and one that differs is never handed out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.actions import Edit
from agent.analysis.report.summary import as_text
from agent.budget import Budget, Stop
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes import Forked, Provider, Snapshot, StateDamaged, Workspace
from sandboxes.conformance import LIMITS, fingerprint, sample
from sandboxes.conformance.given import said
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import BUG, means, task

pytestmark = pytest.mark.namespace

ACTION = """
    echo xx > crlf.txt; rm -r pkg; mkdir -p pkg/deep; echo n > pkg/deep/new; rm latin.txt /etc/shells; ln tool.sh t
    echo t > /tmp/t; chmod 600 no_newline.txt; touch -d 2001-01-01 data.bin; ln -sf nowhere link
"""


@pytest.fixture
def store(namespaces: Path, tmp_path: Path) -> Path:
    return namespaces / tmp_path.name


@pytest.fixture
def provider(store: Path) -> Iterator[Provider]:
    with namespace_provider(store, LIMITS, paranoid=True) as provider:
        yield provider


@pytest.fixture
def base(provider: Provider, tmp_path: Path) -> Snapshot:
    return provider.create(Workspace(path=sample(tmp_path / "checkout"), mount="/workspace"))


@pytest.fixture
def changed(provider: Provider, base: Snapshot) -> Snapshot:
    with provider.at(base) as box:
        said(box, ACTION)
        return box.snapshot()


def layer(store: Path, snapshot: Snapshot, position: int = -1) -> Path:
    """A directory of the workspace's mount."""
    state = json.loads((store / "states" / f"{snapshot.id}.json").read_text())
    return store / state["mounts"][0]["chain"][position]


def keeping_time(path: Path, change: Callable[[Path], object]) -> None:
    facts, above = path.lstat(), path.parent.lstat()
    change(path)
    if path.exists():
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    os.utime(path.parent, ns=(above.st_atime_ns, above.st_mtime_ns))


def add_to(folder: Path) -> None:
    facts = folder.lstat()
    (folder / "other").write_bytes(b"")
    os.utime(folder, ns=(facts.st_atime_ns, facts.st_mtime_ns))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "content": lambda top: keeping_time(top / "workspace/crlf.txt", lambda path: path.write_bytes(b"xy\n")),
    "mode": lambda top: (top / "workspace/no_newline.txt").chmod(0o644),
    "time": lambda top: os.utime(top / "workspace/data.bin", ns=(0, 978307200_000000001)),
    "attribute": lambda top: os.setxattr(top / "workspace/crlf.txt", "user.note", b"x"),
    "removed": lambda top: keeping_time(top / "workspace/pkg/deep/new", Path.unlink),
    "added": lambda top: add_to(top / "workspace/pkg/deep"),
    "reappeared": lambda top: keeping_time(top / "workspace/latin.txt", Path.unlink),
    "reappeared below": lambda top: keeping_time(top / "etc/shells", Path.unlink),
    "seen through": lambda top: os.removexattr(top / "workspace/pkg", "user.overlay.opaque"),
    "a name less": lambda top: keeping_time(top / "workspace/t", Path.unlink),
}


def test_what_is_whole_is_forked_and_counted(provider: Provider, base: Snapshot, changed: Snapshot) -> None:
    with provider.at(changed) as box:
        seen = fingerprint(box)
        said(box, "rm /tmp/t; echo again > pkg/deep/new")
        box.snapshot()
    with provider.at(changed) as box, provider.scratch(changed, base, ["pkg"]) as other:
        assert fingerprint(box) == seen
        assert said(other, "cat pkg/deep/two.txt") == "2"
    assert provider.forked == Forked(times=4, mismatches=0, checked=True)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_layer_is_never_forked(provider: Provider, changed: Snapshot, store: Path, damage: str) -> None:
    before = provider.forked.times
    DAMAGE[damage](layer(store, changed))
    for _ in range(2):
        with pytest.raises(StateDamaged, match=changed.id), provider.at(changed):
            pytest.fail("it was handed out")
    assert provider.forked == Forked(before, 2, checked=True)


def test_damage_below_is_found_in_every_state_above(provider: Provider, base: Snapshot, store: Path) -> None:
    with provider.at(base) as box:
        for number in range(40):
            box.write("number", b"%d" % number)
            last = box.snapshot()
    assert list((store / "flat").iterdir())
    source = layer(store, base, 0) / "workspace/src/app.py"
    keeping_time(source, lambda path: path.write_bytes(path.read_bytes().replace(b"-", b"*")))
    for snapshot in (base, last):
        with pytest.raises(StateDamaged), provider.at(snapshot):
            pytest.fail("it was handed out")


def test_a_damaged_workspace_is_never_measured(
    provider: Provider, base: Snapshot, changed: Snapshot, store: Path
) -> None:
    DAMAGE["content"](layer(store, changed))
    with pytest.raises(StateDamaged, match=changed.id), provider.scratch(changed, base):
        pytest.fail("it was handed out")
    with provider.at(base) as box:
        assert said(box, "cat no_newline.txt") == "no newline at the end"


def test_a_merged_layer_is_checked_too(provider: Provider, base: Snapshot, store: Path) -> None:
    with provider.at(base) as box:
        said(box, ACTION)
        for number in range(34):
            box.write("number", b"%d" % number)
            last = box.snapshot()
    with provider.at(last) as box:
        assert said(box, "cat crlf.txt") == "xx"
    DAMAGE["content"](layer(store, last, 2))
    with pytest.raises(StateDamaged), provider.at(last):
        pytest.fail("it was handed out")


def test_a_state_without_a_digest_is_not_trusted(store: Path, tmp_path: Path) -> None:
    with namespace_provider(store, LIMITS) as provider:
        base = provider.create(Workspace(path=sample(tmp_path / "checkout")))
        with provider.at(base):
            assert provider.forked == Forked(times=1)
    with (
        namespace_provider(store, LIMITS, paranoid=True) as provider,
        pytest.raises(StateDamaged, match="without a digest"),
        provider.at(base),
    ):
        pytest.fail("it was handed out")


@pytest.mark.slow
def test_a_run_says_that_nothing_differed(tmp_path: Path) -> None:
    repo = means(tmp_path / "repo")
    command = [sys.executable, "-m", "agent", "solve", "--issue", "x", "--repo", repo, "--out", tmp_path / "run",
               "--sandbox", "namespace", "--paranoid", "-c",
               'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stderr.splitlines() if line.startswith("states"))
    words = line.split()
    assert int(words[2]) > 4
    assert line == f"states   forked {words[2]} times, 0 mismatches"


def test_a_run_ends_where_a_state_is_damaged(tmp_path: Path) -> None:
    def answer(position: Position) -> Proposal:
        if position.index == 1:
            (source,) = (tmp_path / "run" / "store" / "imports").rglob("means.py")
            keeping_time(source, lambda path: path.write_bytes(path.read_bytes().upper()))
        return Proposal((Edit("means.py", BUG, f"    if len(numbers) < -{position.index + 1}:\n"),))

    with Run.open(tmp_path / "run") as run, namespace_provider(tmp_path / "run" / "store", paranoid=True) as provider:
        parts = Components(provider, Scripted(answer), BestFirst(), PassingTests(), Budget(), baseline_runs=1)
        result = solve(task(means(tmp_path / "repo")), parts, run)
    assert isinstance(result.error, StateDamaged)
    assert (result.stop, result.forked.mismatches) == (Stop.FAILED, 1)
    assert "times, 1 mismatch\n" in as_text(result, None)
