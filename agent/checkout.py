"""The user's checkout: what it is before a run, and the one way in which a patch reaches it.

Law: it is read only, except in `apply`, which changes it whole or not at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent.errors import RamifyError, UsageError
from sandboxes import GitFailed
from sandboxes.foreign import locate, opened

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
        sandboxes.SandboxError: git cannot read it.
    """
    if not path.is_dir():
        raise UsageError(f"--repo {path}: there is no such directory")
    found = locate(path)
    if found is None:
        remedy = f"make it one: git -C {path} init && git -C {path} add -A && git -C {path} commit -m base"
        raise UsageError(f"--repo {path} is not a git repository; {remedy}")
    root = found.work_tree
    if root is None:
        raise UsageError(f"--repo {path} is a bare repository; clone it and give the clone: git clone {path} DIR")
    if root != path.resolve():
        raise UsageError(f"--repo {path} lies inside the repository {root}; give its root: --repo {root}")
    with opened(found) as view:
        origin = view.settings.get("remote.origin.url", "")
        return Checkout(root, view.commit(), view.dirty(), _address(origin))


def _address(url: str) -> str:
    """The address of a repository on another machine, without the name and the password that may be in it."""
    elsewhere = re.match(r"(?!file:)\w+://|[^/:]+@[^/:]+:", url)
    return re.sub(r"(?<=://)[^/]*@", "", url) if elsewhere else ""


def apply(path: Path, patch: bytes) -> None:
    """Apply a git patch to the work tree at `path`, or leave it as it is.

    Raises:
        agent.errors.RamifyError: the patch does not apply there any more; nothing was changed.
    """
    found = locate(path)
    if found is None:
        raise RamifyError(f"nothing was applied to {path}: it is no git repository any more")
    with opened(found) as view:
        try:
            view.git.run("apply", "--check", stdin=patch)
            view.git.run("apply", "--whitespace=nowarn", stdin=patch)
        except GitFailed as error:
            reason = error.said.splitlines()[0]
            raise RamifyError(f"nothing was applied to {path}: {reason}; it has changed since the run began") from error
