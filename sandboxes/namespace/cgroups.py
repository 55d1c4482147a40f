"""Memory and process limits for one guest, through its own control group if this user may create one.

The process that created a group holds a lock on its directory, which the kernel releases when the process ends. A group
without a lock is a leftover and is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sandboxes import Limits, SandboxUnavailable
from sandboxes.cleanup import Leftover

_ROOT = Path("/sys/fs/cgroup")
_OWN_MEMORY_BYTES = 64 << 20
"""The memory that the guest itself needs, in addition to its command."""
_OWN_PIDS = 8
_PREFIX = "ramify."
_TRIES = 10
_LOST_RACES = (errno.ENOENT, errno.ENODEV, errno.EBUSY, errno.EAGAIN)
"""Errors when another process removes a group while it is being created."""


@dataclass(frozen=True, slots=True)
class Group:
    """A control group. Empty if none can be created."""

    directories: tuple[Path, ...] = ()
    locks: tuple[int, ...] = ()
    """Descriptors of the directories, locked."""
    memory_events: Path | None = None
    pids_events: Path | None = None

    @property
    def joins(self) -> tuple[str, ...]:
        """Files to write a process id to."""
        return tuple(str(directory / "cgroup.procs") for directory in self.directories)

    def remove(self) -> None:
        """Remove the group, which must have no processes left."""
        for directory, lock in zip(self.directories, self.locks, strict=True):
            _remove(directory)
            os.close(lock)


def limited() -> frozenset[str]:
    """Return which of `memory` and `pids` this user's groups can limit here."""
    return frozenset(kind for parent in _parents() for kind in ("memory", "pids") if _limits(parent, kind))


def make(limits: Limits) -> Group:
    """Create a group with these limits for a command, plus a little for its guest.

    Raises:
        SandboxUnavailable: groups are supported here, but creating this one failed.
    """
    memory, pids = str(limits.memory_bytes + _OWN_MEMORY_BYTES), str(limits.pids + _OWN_PIDS)
    values = {
        "memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory,
        "memory.max": memory, "memory.swap.max": "0", "pids.max": pids,
    }  # fmt: skip
    made = [_made(parent, values) for parent in _parents()]
    directories = [directory for directory, _ in made]
    return Group(
        tuple(directories),
        tuple(lock for _, lock in made),
        _first(directories, ("memory.events", "memory.oom_control")),
        _first(directories, ("pids.events",)),
    )


def _made(parent: Path, values: dict[str, str]) -> tuple[Path, int]:
    """Create a group's directory, write the values that it has files for, and return it with its lock."""
    _sweep(parent)
    lost_races = 0
    while True:
        directory = parent / f"{_PREFIX}{secrets.token_hex(8)}"
        try:
            directory.mkdir()
            return directory, _filled(directory, values)
        except OSError as error:
            lost_races += 1
            if error.errno not in _LOST_RACES or lost_races == _TRIES:
                raise SandboxUnavailable(f"cannot create a control group in {parent} ({error.strerror})") from error


def _filled(directory: Path, values: dict[str, str]) -> int:
    lock = _lock(directory)
    try:
        for file, value in values.items():
            if (directory / file).exists():
                (directory / file).write_text(value)
    except OSError:
        os.close(lock)
        raise
    return lock


def _lock(directory: Path) -> int:
    """Lock a group's directory and return the descriptor.

    Raises:
        OSError: another process holds the lock, or has removed the directory.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        directory.stat()
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(directory: Path) -> None:
    """Remove a directory. The kernel takes a moment to release dead processes; a later sweep removes what is left."""
    for _ in range(50):
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return


def _first(directories: list[Path], files: tuple[str, ...]) -> Path | None:
    found = (directory / file for directory in directories for file in files if (directory / file).exists())
    return next(found, None)


def _parents() -> tuple[Path, ...]:
    """List where this user can create groups: version 1 has one tree per kind of limit, version 2 one for all."""
    if (_ROOT / "cgroup.controllers").exists():
        trees = [_ROOT] if all(_limits(_ROOT, kind) for kind in ("memory", "pids")) else []
    else:
        trees = [tree for tree in (_ROOT / "memory", _ROOT / "pids") if (tree / "cgroup.procs").exists()]
    return tuple(tree for tree in trees if os.access(tree, os.W_OK))


def _limits(parent: Path, kind: str) -> bool:
    control = parent / "cgroup.subtree_control"
    return kind in control.read_text().split() if control.exists() else parent.name == kind


def leftovers(*, all_users: bool = True) -> Iterator[Leftover]:
    """Yield the groups of processes that have ended; without `all_users`, only those of this user."""
    for parent in _parents():
        for left in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if not all_users and left.stat().st_uid != os.getuid():
                    continue
                with _locked(left):
                    empty = not (left / "cgroup.procs").read_text()
                if empty:
                    yield Leftover(f"control group {left}", 0, partial(_removed, left))


def _sweep(parent: Path) -> None:
    """Remove the groups of processes that have ended."""
    for left in parent.glob(f"{_PREFIX}*"):
        _removed(left)


def _removed(left: Path) -> bool:
    with contextlib.suppress(OSError), _locked(left):
        left.rmdir()
    return not left.exists()


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    lock = _lock(directory)
    try:
        yield
    finally:
        os.close(lock)
