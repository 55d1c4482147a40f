"""Clean clones: one commit, no remote, no hooks, nothing of the user's git configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.instances import InstanceBroken

__all__ = ["GitRefused", "apply", "clone", "create", "git", "paths_of", "reveal", "seal"]

TIMEOUT_S = 300
_AUTHOR = ("-c", "user.name=ramify", "-c", "user.email=ramify@localhost", "-c", "commit.gpgSign=false")
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fsmonitor=false")


class GitRefused(Exception):
    """git did not do what it was asked for; carries what it said."""


def clone(source: Path, commit: str, folder: Path) -> None:
    """Check `commit` of a bundle or repository out into `folder` (replaced), its history and remote removed.

    Raises:
        InstanceBroken: the source does not exist, or does not hold the commit.
    """
    if not source.exists():
        raise InstanceBroken(f"{source} does not exist; an instance names it as its repository")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        git("clone", "-q", "--no-checkout", "--no-local", "--template=", str(source.resolve()), str(folder))
        git("checkout", "-q", "--detach", commit or "HEAD", cwd=folder)
        git("remote", "remove", "origin", cwd=folder)
        single = git("rev-list", "--all", "HEAD", "--count", cwd=folder).strip() == b"1"
    except GitRefused as error:
        raise InstanceBroken(f"cannot check {commit or 'HEAD'} of {source} out: {error}") from error
    if not single:
        seal(folder)


def create(folder: Path) -> None:
    """Make the files of a folder a repository of one commit.

    Raises:
        InstanceBroken: git does not do it.
    """
    try:
        git("init", "-q", "--template=", cwd=folder)
    except GitRefused as error:
        raise InstanceBroken(f"cannot make {folder} a repository: {error}") from error
    seal(folder)


def seal(folder: Path) -> None:
    """Make what is checked out the only commit there is: no later and no earlier state can be looked up.

    Raises:
        InstanceBroken: git does not do it.
    """
    try:
        _seal(folder)
    except GitRefused as error:
        raise InstanceBroken(f"cannot make {folder} a repository of one commit: {error}") from error


def _seal(folder: Path) -> None:
    git("add", "-A", "-f", cwd=folder)
    tree = git("write-tree", cwd=folder).decode().strip()
    date = "2000-01-01T00:00:00Z"
    dated = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    commit = git(*_AUTHOR, "commit-tree", tree, "-m", "base", cwd=folder, env=dated).decode().strip()
    git("checkout", "-q", "--detach", commit, cwd=folder)
    refs = git("for-each-ref", "--format=delete %(refname)", cwd=folder)
    git("update-ref", "--stdin", cwd=folder, stdin=refs)
    git("reflog", "expire", "--expire=now", "--all", cwd=folder)
    git("gc", "-q", "--prune=now", cwd=folder)


def apply(folder: Path, patch: bytes) -> None:
    """Apply a git patch to the files, whole or not at all; an empty one changes nothing.

    Raises:
        GitRefused: git does not apply it.
    """
    if patch:
        git("apply", "--whitespace=nowarn", "-", cwd=folder, stdin=patch)


def reveal(folder: Path, test_patch: bytes) -> None:
    """Make the hidden tests of an instance, whose checkout the folder is, a part of its only commit.

    Raises:
        InstanceBroken: they do not apply.
    """
    try:
        apply(folder, test_patch)
    except GitRefused as error:
        raise InstanceBroken(f"the test patch of {folder.name} does not apply: {error}") from error
    seal(folder)


def paths_of(patch: bytes) -> tuple[str, ...]:
    """Every path that a git patch adds, changes, removes or renames, sorted.

    Raises:
        GitRefused: not a patch.
    """
    if not patch:
        return ()
    found: set[str] = set()
    for direction in ((), ("-R",)):
        listing = git("apply", "--numstat", "-z", *direction, "-", stdin=patch)
        found |= {os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry}
    return tuple(sorted(found))


def git(*argv: str, cwd: Path | None = None, stdin: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    """What git prints, run without the user's settings.

    Raises:
        GitRefused: it does not end with 0, or not in time.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *_SAFE, *argv], cwd=cwd or os.sep, input=stdin, env=clean | (env or {}), capture_output=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise GitRefused(f"git {argv[0]} took longer than {TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise GitRefused(done.stderr.decode(errors="replace").strip()[-500:])
    return done.stdout
