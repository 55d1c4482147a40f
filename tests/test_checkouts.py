"""Ramify answers in every kind of checkout: its patch is found and applied, or one sentence says what to do first."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import commands
from tests.checkouts import DAMAGED, KINDS, of_another_user
from tests.projects import BUG, FIX, GOAL

Build = Callable[[Path], Path]

ROOT = Path(__file__).parent.parent
PLAIN = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty directory for a checkout and what belongs to it."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


def fix(checkout: Path, run: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = ("fix", GOAL, "--repo", checkout, "--out", run, "--apply", *PLAIN, *options)
    return commands.ramify(command, cwd=run.parent, env=environment)


def contents(directory: Path) -> dict[str, tuple[int, str]]:
    """Mode and digest of everything below."""
    found = {}
    for path in directory.rglob("*"):
        facts = path.lstat()
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(directory))] = (facts.st_mode, hashlib.sha256(data).hexdigest())
    return found


def changed(before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def differs(checkout: Path) -> list[str]:
    """The lines that git itself says were changed."""
    command = ["git", "-c", "safe.directory=*", "-c", "diff.autoRefreshIndex=false", "diff", "-U0"]
    said = subprocess.run(command, cwd=checkout, capture_output=True, check=True, text=True).stdout
    return sorted(
        line
        for line in said.replace("\r", "").splitlines()
        if line[:1] in ("+", "-") and line[:4] != "+++ " and line[:4] != "--- "
    )


def repaired(build: Build, here: Path, environment: dict[str, str], *options: str) -> None:
    """`fix --apply` leaves the fix in the checkout, and everything else as it was."""
    if build is of_another_user and os.geteuid():
        pytest.skip("only root can give files away")
    checkout = build(here)
    before, differed = contents(here), differs(checkout) if not (here / "pointer").exists() else []
    done = fix(checkout, here.parent / "run", environment, *options)
    assert done.returncode == 0, done.stderr
    path = (checkout / "means.py").relative_to(here)
    assert changed(before, contents(here)) == {str(path)}
    assert differs(checkout) == sorted([f"-{BUG.rstrip()}", f"+{FIX.rstrip()}", *differed])


@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("build", KINDS, ids=lambda build: build.__name__)
def test_a_bug_is_fixed_in_every_kind_of_checkout_and_nothing_else_changes(build, here, environment):
    repaired(build, here, environment)


@pytest.mark.parametrize("build", DAMAGED, ids=lambda build: build.__name__)
def test_a_damaged_checkout_is_refused_with_one_sentence_before_anything_is_searched(build, here, environment):
    checkout = build(here)
    before = contents(here)
    done = fix(checkout, here.parent / "run", environment)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ramify: --repo {checkout} ")
    assert f"repair what `git -C {checkout} status` complains of, or clone" in line
    assert "/tmp/ramify-git" not in line
    assert not (here.parent / "run").exists()
    assert contents(here) == before
