"""The user's checkout: what it is before a run, and the one way in which a patch reaches it.

Law: it is read only, except in `apply`, which changes it whole or not at all.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agent.errors import RamifyError, UsageError

__all__ = ["Checkout", "apply", "inspect"]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A git work tree."""

    path: Path
    """Absolute, its root."""
    head: str
    """The commit that is checked out; empty before the first one."""
    dirty: bool
    """There are changes, or untracked files, that no commit holds."""
    origin: str
    """The address that it was cloned from, without a password; empty where it is on this machine or not known."""


def inspect(path: Path) -> Checkout:
    """What is at `path`.

    Raises:
        agent.errors.UsageError: not the root of a git work tree; the message says what to do.
    """
    import git

    if not path.is_dir():
        raise UsageError(f"--repo {path}: there is no such directory")
    try:
        repo = git.Repo(path, search_parent_directories=True)
    except git.InvalidGitRepositoryError as error:
        remedy = f"make it one: git -C {path} init && git -C {path} add -A && git -C {path} commit -m base"
        raise UsageError(f"--repo {path} is not a git repository; {remedy}") from error
    with repo:
        root = repo.working_tree_dir
        if root is None:
            raise UsageError(f"--repo {path} is a bare repository; clone it and give the clone: git clone {path} DIR")
        if Path(root).resolve() != path.resolve():
            raise UsageError(f"--repo {path} lies inside the repository {root}; give its root: --repo {root}")
        head = repo.head.commit.hexsha if repo.head.is_valid() else ""
        # Without these, git would refresh the index, and run a program that the repository's settings name.
        with repo.git.custom_environment(GIT_OPTIONAL_LOCKS="0"):
            dirty = bool(repo.git(c="core.fsmonitor=false").status("--porcelain"))
        origin = str(repo.config_reader().get_value('remote "origin"', "url", ""))
    return Checkout(Path(root).resolve(), head, dirty, _address(origin))


def _address(url: str) -> str:
    """The address of a repository on another machine, without the name and the password that may be in it."""
    elsewhere = re.match(r"(?!file:)\w+://|[^/:]+@[^/:]+:", url)
    return re.sub(r"(?<=://)[^/]*@", "", url) if elsewhere else ""


def apply(path: Path, patch: bytes) -> None:
    """Apply a git patch to the work tree at `path`, or leave it as it is.

    Raises:
        agent.errors.RamifyError: the patch does not apply there any more; nothing was changed.
    """
    import git

    with git.Repo(path) as repo, tempfile.NamedTemporaryFile(suffix=".diff") as file:
        file.write(patch)
        file.flush()
        try:
            repo.git.apply("--check", file.name)
            repo.git.apply("--whitespace=nowarn", file.name)
        except git.GitCommandError as error:
            reason = error.stderr.strip().removeprefix("stderr: ").strip("'").splitlines()[0]
            raise RamifyError(f"nothing was applied to {path}: {reason}; it has changed since the run began") from error
