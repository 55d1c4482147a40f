"""A checkout holds nothing of what came later: no commit, tag, remote or log tells a solver how others fixed it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.data import clones
from benchmarks.data.sources.formats import format_of
from benchmarks.data.sources.images import SEALED, SEALED_WHERE_KEPT, SINGLE_COMMIT
from tests.instances import FILES, FIXED, git, write
from tests.test_sources import ROWS

SOLUTION = b"the solution"


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository at an old commit, with whatever may name a later one."""
    folder, origin = tmp_path / "upstream", tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q")
    for files, subject in ((FILES, "past"), ({"calc.py": FILES["calc.py"] + b"# now\n"}, "now"), (FIXED, "fix")):
        write(origin, {**files, "note": SOLUTION} if files is FIXED else files)
        git(origin, "add", "-A")
        git(origin, "commit", "-q", "-m", subject)
        git(origin, "tag", f"v-{subject}")
    git(origin, "branch", "fixed")
    git(origin, "tag", "-a", "-m", "signed", "annotated")
    git(origin, "tag", "blob", "HEAD:note")
    git(origin, "tag", "tree", "HEAD^{tree}")
    git(origin, "notes", "add", "-m", SOLUTION.decode())
    git(origin, "gc", "-q")
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    git(folder, "fetch", "-q", "origin", "refs/notes/*:refs/notes/*")
    write(folder, {"calc.py": FIXED["calc.py"] + b"# stashed\n"})
    git(folder, "stash")
    git(folder, "reset", "-q", "--hard", "v-now")
    return folder


def shell(*commands: str) -> Callable[[Path, Path], Path]:
    def run(upstream: Path, target: Path) -> Path:
        for command in commands:
            subprocess.run(["sh", "-c", command], cwd=upstream, check=True, capture_output=True)
        return upstream

    return run


def cloned(upstream: Path, target: Path) -> Path:
    clones.clone(upstream, git(upstream, "rev-parse", "HEAD").decode().strip(), target)
    return target


WAYS = {
    "a clone": cloned,
    "an image": shell(SEALED),
    "an image that may have no repository": shell(SEALED_WHERE_KEPT),
    "an image whose past shows what to undo": shell(SINGLE_COMMIT, SEALED),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_of_the_future_can_be_reached_or_found(way: str, upstream: Path, tmp_path: Path) -> None:
    fix = git(upstream, "rev-parse", "v-fix").decode().strip()
    blob = git(upstream, "rev-parse", "v-fix:note").decode().strip()
    held = WAYS[way](upstream, tmp_path / "clone")
    there = git(held, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split()
    assert there
    assert not {fix, blob} & set(there)
    assert git(held, "fsck", "--unreachable", "--no-reflogs") == b""
    assert git(held, "remote") == git(held, "stash", "list") == b""
    assert git(held, "reflog", "--all") == b""
    reachable = git(held, "log", "--all", "--format=%s").decode().split()
    assert set(reachable) <= {"past", "now", "base"}
    assert len(reachable) == (2 if way.startswith("an image") and "undo" not in way else 1)
    assert (held / "calc.py").read_bytes() == FILES["calc.py"] + b"# now\n"
    assert git(held, "status", "--porcelain") == b""
    left = [path for path in (held / ".git").rglob("*") if path.is_file() and fix.encode() in path.read_bytes()]
    assert left == []


@pytest.mark.parametrize("row", [row for them in ROWS.values() for row in them])
def test_every_row_whose_checkout_is_in_an_image_is_sealed_last_of_all(row: dict) -> None:
    workspace = format_of(row).read(row).task.workspace
    assert workspace.path is None
    assert workspace.setup[-1] in (SEALED, SEALED_WHERE_KEPT)


def test_other_branches_leave_nothing_behind_where_the_one_that_is_cloned_has_a_single_commit(tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    git(upstream, "init", "-q", "-b", "main")
    git(upstream, "commit", "-q", "--allow-empty", "-m", "base")
    base = git(upstream, "rev-parse", "HEAD").decode().strip()
    git(upstream, "switch", "-q", "-c", "later")
    (upstream / "fix").write_text("the fix")
    git(upstream, "add", "-A")
    git(upstream, "commit", "-q", "-m", "fix")
    fix = git(upstream, "rev-parse", "HEAD").decode().strip()
    git(upstream, "switch", "-q", "main")
    clones.clone(upstream, base, tmp_path / "clone")
    assert fix not in git(tmp_path / "clone", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode()
