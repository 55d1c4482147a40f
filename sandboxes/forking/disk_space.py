"""Measures free disk space, and requires enough of it before work on states starts or continues."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sandboxes import StoreFull

RESERVE_BYTES = 256 << 20
"""Below this much free space no new states are made. It is enough to verify a patch and to record the result."""
FINISH_BYTES = 96 << 20
"""Below this much free space tests are unreliable: the guest ends commands when the disk has 64 MiB left."""
_MIB = 1 << 20


def require(directory: Path, needed_bytes: int, what: str) -> None:
    """Raise StoreFull if the disk of a directory, which need not exist yet, has less free space."""
    free = free_bytes(directory)
    if free < needed_bytes:
        raise StoreFull(
            f"the disk of {directory} has {free // _MIB} MiB free, and {what} takes {-(-needed_bytes // _MIB)} MiB; "
            "free some space (`ramify clean` lists what Ramify has left), or use another disk (--out)"
        )


def free_bytes(directory: Path) -> int:
    """Return the bytes that an ordinary user can still write to the disk of a directory."""
    place = next(part for part in (directory, *directory.parents) if part.exists())
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize


def weigh(path: Path) -> int:
    """Return the total bytes of the files below a directory. Links are not followed; unreadable entries count as 0."""
    total, waiting = 0, [str(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_size
    return total
