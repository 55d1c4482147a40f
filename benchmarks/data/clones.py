"""Makes clean clones: with one commit, and without remotes, hooks or the user's git configuration."""

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

TIMEOUT_S = 300
_AUTHOR = ("-c", "user.name=ramify", "-c", "user.email=ramify@localhost", "-c", "commit.gpgSign=false")
_BUNDLE = b"# v"


class GitRefused(Exception):
    """Git failed, or the source is neither a bundle nor a repository."""


def clone(source: Path, commit: str, folder: Path) -> None:
    """Check out `commit` of a bundle or repository into `folder` (replaced), and remove its history and remote.

    Raises:
        InstanceBroken: the source does not exist, or does not have the commit.
    """
    if not source.exists():
        raise InstanceBroken(f"the repository {source} does not exist: put it there, or correct the instance")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _clonable(source) as ours, _refusals():
            Git.clone(ours, folder, timeout_s=TIMEOUT_S)
        git("checkout", "-q", "--detach", commit or "HEAD", cwd=folder)
        single = git("rev-list", "--all", "HEAD", "--count", cwd=folder).strip() == b"1"  # of all branches
        git("remote", "remove", "origin", cwd=folder)
    except GitRefused as error:
        raise InstanceBroken(
            f"cannot check out {commit or 'HEAD'} of {source}: {error}; the commit has to be in a branch of it"
        ) from error
    if not single:
        seal(folder)


@contextmanager
def _clonable(source: Path) -> Iterator[Path]:
    """Yield a path to clone from: the bundle itself, or a view of the repository with Ramify's settings."""
    if source.is_file():
        with source.open("rb") as file:
            if not file.read(len(_BUNDLE)) == _BUNDLE:
                raise GitRefused(f"{source} is not a bundle")
        yield source.resolve()
        return
    repository = locate(source)
    if repository is None or source.resolve() not in (repository.work_tree, repository.git_dir):
        raise GitRefused(f"{source} is neither a bundle nor a repository")
    with _refusals(), opened(repository) as view:
        yield view.git.directory


def create(folder: Path) -> None:
    """Turn a folder into a repository with one commit. A repository that is already there is replaced.

    Raises:
        InstanceBroken: git fails.
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
        raise InstanceBroken(f"cannot turn {folder} into a repository: {error}") from error
    seal(folder)


def seal(folder: Path) -> None:
    """Make the checked-out files the only commit, so that no later or earlier state can be looked up.

    Raises:
        InstanceBroken: git fails.
    """
    try:
        _seal(folder)
    except GitRefused as error:
        raise InstanceBroken(f"cannot turn {folder} into a repository with one commit: {error}") from error


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
    """Remove nested repositories from the index, so that they are added again. To see whether an indexed one has
    changed, git would run inside it with that repository's settings."""
    entries = [entry.split(b"\t", 1) for entry in git("ls-files", "-sz", cwd=folder).split(b"\0") if entry]
    nested = [path for facts, path in entries if facts.startswith(b"160000 ")]
    present = [path + b"\0" for path in nested if os.path.lexists(folder / os.fsdecode(path) / ".git")]
    if present:
        git("update-index", "-z", "--force-remove", "--stdin", cwd=folder, stdin=b"".join(present))


def apply(folder: Path, patch: bytes) -> None:
    """Apply a git patch to the files, whole or not at all. An empty patch changes nothing.

    Raises:
        GitRefused: the patch does not apply.
    """
    if patch:
        git("apply", "--whitespace=nowarn", "-", cwd=folder, stdin=patch)


def reveal(folder: Path, test_patch: bytes) -> None:
    """Add the hidden tests to the only commit of an instance's checkout.

    Raises:
        InstanceBroken: the test patch does not apply.
    """
    try:
        apply(folder, test_patch)
    except GitRefused as error:
        raise InstanceBroken(f"the test patch of {folder.name} does not apply: {error}") from error
    seal(folder)


def paths_of(patch: bytes) -> tuple[str, ...]:
    """Every path that a git patch adds, changes, removes or renames, sorted.

    Raises:
        GitRefused: git cannot read the patch.
    """
    if not patch:
        return ()
    paths: set[str] = set()
    with TemporaryDirectory(prefix="ramify-paths-") as directory, _refusals():
        nowhere = Git(Path(directory))
        for direction in ((), ("-R",)):
            listing = nowhere.run("apply", "--numstat", "-z", *direction, "-", stdin=patch)
            paths |= {os.fsdecode(entry.split(b"\t", 2)[2]) for entry in listing.split(b"\0") if entry}
    return tuple(sorted(paths))


def git(*argv: str, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    """Run git, without the user's settings, in a repository that was made here, and return its output.

    Raises:
        GitRefused: git fails, or takes too long.
    """
    with _refusals():
        return Git.within(cwd).run(*argv, stdin=stdin, env=env, timeout_s=TIMEOUT_S)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn failures of the sandbox's git into `GitRefused`."""
    try:
        yield
    except GitFailed as error:
        raise GitRefused(error.said[-500:]) from error
    except SandboxError as error:
        raise GitRefused(str(error)) from error
