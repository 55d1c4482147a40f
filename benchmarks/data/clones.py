"""Clean clones: one commit, no remote, no hooks, nothing of the user's git configuration."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data.instances import InstanceBroken
from sandboxes import GitFailed, SandboxError
from sandboxes.git.command import Git
from sandboxes.git.foreign import locate, opened

__all__ = ["GitRefused", "apply", "clone", "create", "git", "paths_of", "reveal", "seal"]

TIMEOUT_S = 300
_AUTHOR = ("-c", "user.name=ramify", "-c", "user.email=ramify@localhost", "-c", "commit.gpgSign=false")
_BUNDLE = b"# v"


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
        with _clonable(source) as ours, _refusals():
            Git.clone(ours, folder, timeout_s=TIMEOUT_S)
        git("checkout", "-q", "--detach", commit or "HEAD", cwd=folder)
        git("remote", "remove", "origin", cwd=folder)
        single = git("rev-list", "--all", "HEAD", "--count", cwd=folder).strip() == b"1"
    except GitRefused as error:
        raise InstanceBroken(f"cannot check {commit or 'HEAD'} of {source} out: {error}") from error
    if not single:
        seal(folder)


@contextmanager
def _clonable(source: Path) -> Iterator[Path]:
    """A bundle as it is; of a repository, a view whose settings are ours."""
    if source.is_file():
        with source.open("rb") as file:
            if not file.read(len(_BUNDLE)) == _BUNDLE:
                raise GitRefused(f"{source} is no bundle")
        yield source.resolve()
        return
    found = locate(source)
    if found is None or source.resolve() not in (found.work_tree, found.git_dir):
        raise GitRefused(f"{source} is neither a bundle nor a repository")
    with _refusals(), opened(found) as view:
        yield view.git.directory


def create(folder: Path) -> None:
    """Make the files of a folder a repository of one commit. One that it came with is removed.

    Raises:
        InstanceBroken: git does not do it.
    """
    marker = folder / ".git"
    if marker.is_dir() and not marker.is_symlink():
        shutil.rmtree(marker)
    else:
        marker.unlink(missing_ok=True)
    try:
        with _refusals():
            Git.init(folder)
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
    _forget_nested(folder)
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


def _forget_nested(folder: Path) -> None:
    """Take repositories inside the folder out of the index, to be added anew: git runs itself in those that are there,
    by their own settings, to see whether they have changed."""
    entries = [entry.split(b"\t", 1) for entry in git("ls-files", "-sz", cwd=folder).split(b"\0") if entry]
    nested = [path for facts, path in entries if facts.startswith(b"160000 ")]
    there = [path + b"\0" for path in nested if os.path.lexists(folder / os.fsdecode(path) / ".git")]
    if there:
        git("update-index", "-z", "--force-remove", "--stdin", cwd=folder, stdin=b"".join(there))


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
    with TemporaryDirectory(prefix="ramify-paths-") as directory, _refusals():
        nowhere = Git(Path(directory))
        for direction in ((), ("-R",)):
            listing = nowhere.run("apply", "--numstat", "-z", *direction, "-", stdin=patch)
            found |= {os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry}
    return tuple(sorted(found))


def git(*argv: str, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    """What git prints in a repository that was made here, run without the user's settings.

    Raises:
        GitRefused: it does not end with 0, or not in time.
    """
    with _refusals():
        return Git.within(cwd).run(*argv, stdin=stdin, env=env, timeout_s=TIMEOUT_S)


@contextmanager
def _refusals() -> Iterator[None]:
    """What git says to us as what it says of an instance."""
    try:
        yield
    except GitFailed as error:
        raise GitRefused(error.said[-500:]) from error
    except SandboxError as error:
        raise GitRefused(str(error)) from error
