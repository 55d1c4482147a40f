"""Memory and process limits for one guest, by a control group of its own, where this user may make one."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path

from sandboxes import Limits

__all__ = ["Group", "available", "make"]

_ROOT = Path("/sys/fs/cgroup")
_OWN_MEMORY_BYTES = 64 << 20
"""What the guest itself needs, on top of its command."""
_OWN_PIDS = 8
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Group:
    """A control group. Empty where there is none to be had."""

    directories: tuple[Path, ...] = ()
    memory_events: Path | None = None
    pids_events: Path | None = None

    @property
    def joins(self) -> tuple[str, ...]:
        """Files to write a process id to."""
        return tuple(str(directory / "cgroup.procs") for directory in self.directories)

    def remove(self) -> None:
        """Give it back; it must be empty of processes."""
        for directory in self.directories:
            _remove(directory)


def available() -> bool:
    """Whether `make` gives a group that limits anything."""
    return any(os.access(parent, os.W_OK) for parent in _parents())


def make(limits: Limits) -> Group:
    """A group with these limits for a command, and a little more for its guest."""
    name = f"ramify-{os.getpid()}-{next(_NUMBERS)}"
    memory, pids = str(limits.memory_bytes + _OWN_MEMORY_BYTES), str(limits.pids + _OWN_PIDS)
    made = []
    for parent in _parents():
        _sweep(parent)
        directory = parent / name
        try:
            directory.mkdir()
        except OSError:
            continue
        made.append(directory)
        for file, value in (("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory),
                            ("memory.max", memory), ("memory.swap.max", "0"), ("pids.max", pids)):  # fmt: skip
            if (directory / file).exists():
                (directory / file).write_text(value)
    memory_events = _first(made, ("memory.events", "memory.oom_control"))
    return Group(tuple(made), memory_events, _first(made, ("pids.events",)))


def _remove(directory: Path) -> None:
    """The kernel takes a moment to let go of processes that have died; what stays is swept later."""
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
    """Where groups are made: version 1 has a tree for each kind of limit, version 2 one for all."""
    if (_ROOT / "cgroup.controllers").exists():
        enabled = (_ROOT / "cgroup.subtree_control").read_text().split()
        return (_ROOT,) if {"memory", "pids"} <= set(enabled) else ()
    return tuple(tree for tree in (_ROOT / "memory", _ROOT / "pids") if (tree / "cgroup.procs").exists())


def _sweep(parent: Path) -> None:
    """Remove the groups of processes that are gone."""
    for left in parent.glob("ramify-*-*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
