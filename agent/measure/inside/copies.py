"""Prepare processes for being copied: each copy gets open files and random numbers of its own, caches are cleared, and
the garbage collector skips imported objects."""

from __future__ import annotations

import gc
import importlib
import linecache
import os
import random
import stat
import sys
from typing import TYPE_CHECKING, Dict, Iterable, List, Tuple

import pytest

if TYPE_CHECKING:
    from sandboxes.guest import door
else:
    from ramify_door import door  # put there before this program starts

DESCRIPTORS = 256
"""Number of open files that are checked."""
SELDOM = (100_000, 50, 1_000)
"""Thresholds of the garbage collector during imports, which create no garbage."""


class FrozenImports:
    """A plugin that excludes imported and collected objects from garbage collection, which would scan them five times
    when pytest ends."""

    def __init__(self) -> None:
        self.usual = gc.get_threshold()
        gc.set_threshold(*SELDOM)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Restore the usual garbage collection for the tests."""
        if gc.get_threshold() == SELDOM:
            gc.set_threshold(*self.usual)
        gc.freeze()


def clear_caches() -> None:
    """Clear file system caches. A process calls this before it is copied, so that its copies need not: freeing objects
    copies the memory pages they are in."""
    importlib.invalidate_caches()
    linecache.clearcache()


def reseed() -> None:
    """Reseed the random generators, so that copies draw different numbers."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def replace_descriptors(old: int, new: int, numbers: Iterable[int]) -> None:
    """Make every descriptor that is open as `old` refer to `new`."""
    known = os.fstat(old)
    for number, facts in open_files(numbers):
        if (facts.st_dev, facts.st_ino) == (known.st_dev, known.st_ino):
            os.dup2(new, number, inheritable=os.get_inheritable(number))


def own_unnamed_files(numbers: Iterable[int]) -> None:
    """Unshare files without a name, such as those that pytest captures output in."""
    copies: Dict[Tuple[int, int], int] = {}
    for number, facts in open_files(numbers):
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0:
            key = (facts.st_dev, facts.st_ino)
            if key not in copies:
                copies[key] = copied(number)
            os.dup2(copies[key], number, inheritable=os.get_inheritable(number))
    for copy in copies.values():
        os.close(copy)


def copied(number: int) -> int:
    """A new file with the same content and position."""
    copy = os.memfd_create("copy")
    os.write(copy, door.content(number))
    os.lseek(copy, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
    return copy


def open_files(numbers: Iterable[int] = range(DESCRIPTORS)) -> List[Tuple[int, os.stat_result]]:
    """All open descriptors."""
    found = []
    for number in numbers:
        try:
            found.append((number, os.fstat(number)))
        except OSError:
            continue
    return found
