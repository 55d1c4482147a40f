"""The user's checkout: inspects it before a run, and applies a patch to it.

Invariant: the checkout is only read, except by `apply`, which applies a whole patch or nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent.cli.file_exchange import exchange
from agent.counting import first_of
from agent.errors import RamifyError, UsageError
from agent.untrusted import one_line
from sandboxes import GitFailed, SandboxError
from sandboxes.git.diff import Side, applied, is_applied, outdated
from sandboxes.git.foreign import locate, opened

_SHOWN = 5
"""The maximum number of paths in a message."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A git work tree."""

    path: Path
    """The absolute path of its root."""
    head: str
    """The commit that is checked out; empty before the first commit."""
    dirty: bool
    """Whether there are uncommitted changes or untracked files."""
    origin: str
    """The URL that it was cloned from, without user name and password; empty if unknown or on this machine."""


def inspect(path: Path | None) -> Checkout:
    """Return the checkout with its root at `path`; None: the one that the current directory is in.

    Raises:
        agent.errors.UsageError: `path` is not the root of a git work tree; the message says what to do.
    """
    if path is None:
        here = locate(Path())
        path = (here.work_tree if here else None) or Path()
    if not path.is_dir():
        raise UsageError(f"--repo {path}: there is no such directory")
    repository = locate(path)
    if os.path.lexists(path / ".git") and (repository is None or repository.work_tree != path.resolve()):
        raise _unusable(path, "it is not a git directory, or points to one that is missing")
    if repository is None:
        remedy = f"make it one: git -C {path} init && git -C {path} add -A && git -C {path} commit -m base"
        raise UsageError(f"--repo {path} is not a git repository; name one with --repo DIR, or {remedy}")
    root = repository.work_tree
    if root is None:
        raise UsageError(f"--repo {path} is a bare repository; clone it and name the clone: git clone {path} DIR")
    if root != path.resolve():
        raise UsageError(f"--repo {path} lies inside the repository {root}; name its root: --repo {root}")
    try:
        with opened(repository) as view:
            origin = view.settings.get("remote.origin.url", "")
            try:
                return Checkout(root, view.commit(), view.dirty(), _address(origin))
            except GitFailed as error:
                raise _unusable(path, error.said.replace(str(view.git.directory), str(repository.git_dir))) from error
    except SandboxError as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"--repo {path} has a git directory that git cannot use ({one_line(why)}); repair what `git -C {path} status` "
        "complains about, or clone the repository again"
    )


def _address(url: str) -> str:
    """Return a URL without its user name and password; empty if the repository is on this machine."""
    elsewhere = re.match(r"(?!file:)\w+://|[^/:]+@[^/:]+:", url)
    return re.sub(r"(?<=://)[^/]*@", "", url) if elsewhere else ""


def apply(path: Path, patch: bytes, run: Path) -> None:
    """Apply the patch of a run to the work tree at `path`, whole or not at all. The files that the patch touches must
    be unchanged since the run began; other files, attributes and settings of the repository do not matter.

    Raises (nothing was applied then):
        agent.errors.UsageError: a file has changed since, or the patch is already applied. The message says what to do.
        agent.errors.RamifyError: a file cannot be read or written.
    """
    refused = f"nothing was applied to {path}"
    if not path.is_dir():
        raise UsageError(f"{refused}: the directory no longer exists; name a checkout with --repo DIR")
    try:
        changed = _changed(path, patch)
        if changed and is_applied(patch, partial(_side, path)):
            raise UsageError(f"{refused}: the patch is already applied there")
        if changed:
            merge = f"ramify show {shlex.quote(str(run))} --patch | git -C {shlex.quote(str(path))} apply --3way"
            shown = first_of([*map(one_line, changed)], _SHOWN)
            raise UsageError(
                f"{refused}: {shown} changed since the run began; commit your changes, and merge the patch: {merge}"
            )
        exchange(path, applied(patch, partial(_side, path), guarded=True))
    except SandboxError as error:
        raise RamifyError(f"{refused}: {error}") from error
    except OSError as error:
        raise RamifyError(f"{refused}: {error.filename} cannot be read or written ({error.strerror})") from error


def _changed(root: Path, patch: bytes) -> list[str]:
    """Return the files that are not as the patch was made from them.

    Raises:
        agent.errors.UsageError: none of the files that the patch touches is there.
    """
    found = dict[str, Side | None]()

    def side(path: str) -> Side | None:
        return found.setdefault(path, _side(root, path))

    try:
        changed = outdated(patch, side)
        if not changed or any(found.values()):
            return changed
    except GitFailed:
        if not found or any(found.values()):
            raise
    raise UsageError(
        f"nothing was applied to {root}: the file {one_line(next(iter(found)))}, which the patch changes, is not "
        "there; if another checkout is meant, name it with --repo DIR"
    )


def _side(root: Path, path: str) -> Side | None:
    """Return the file at a path. None: there is nothing, or a directory, which a patch that empties it may replace."""
    *folders, name = path.split("/")
    place = root
    for folder in folders:
        place /= folder
        if place.is_symlink():
            return Side("o", 0, b"")
        if not place.is_dir():
            return None
    place /= name
    if place.is_symlink():
        return Side("l", 0o777, os.fsencode(place.readlink()))
    if place.is_dir() or not place.exists():
        return None
    return Side("f", place.stat().st_mode & 0o7777, place.read_bytes()) if place.is_file() else Side("o", 0, b"")
