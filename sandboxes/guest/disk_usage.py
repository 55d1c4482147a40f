"""Measures disk usage while files may change: the files of a tree, and deleted files that are still open."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Any, Iterator, List, Set, Tuple

from .entries import open_at
from .frames import Refused

MAX_NESTING = 200
"""The most levels of directories in a fork's changes. Each level takes descriptors, here and when a state is read."""
MAX_SPARSENESS = 4
"""The total length of a state's files may exceed the disk limit by this factor, because every byte of them is read."""


def in_tree(directory: int) -> Iterator[os.stat_result]:
    """Yield the facts about everything below a directory, without following symbolic links.

    Raises:
        Refused: directories are nested too deep.
    """
    levels = [open_level(directory, ".")]
    try:
        while levels:
            here, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                close_level(levels.pop())
                continue
            with suppress(FileNotFoundError, NotADirectoryError):
                facts = os.lstat(entry.name, dir_fd=here)
                yield facts
                if stat.S_ISDIR(facts.st_mode):
                    if len(levels) == MAX_NESTING:
                        raise Refused("sandbox", "directories are nested more than %d deep" % MAX_NESTING)
                    levels.append(open_level(here, entry.name))
    finally:
        for level in levels:
            close_level(level)


def open_level(directory: int, name: str) -> Tuple[int, Any]:
    """Open a directory. Returns its descriptor and an iterator over its entries."""
    here = open_at(directory, name, os.O_DIRECTORY)
    return here, os.scandir(here)


def close_level(level: Tuple[int, Any]) -> None:
    """Close what `open_level` returned."""
    level[1].close()
    os.close(level[0])


def check_frozen(directory: str, disk_bytes: int) -> None:
    """Check that the files of a fork can be read in reasonable time.

    Raises:
        Refused: directories are nested too deep, or files are too long.
    """
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        length = sum(facts.st_size for facts in in_tree(top) if stat.S_ISREG(facts.st_mode))
    finally:
        os.close(top)
    if length > MAX_SPARSENESS * disk_bytes:
        raise Refused("sandbox", "the files of a state are %d bytes long, most of them holes" % length)


def used_bytes(directory: int) -> int:
    """Return the bytes that a tree takes on disk."""
    return sum(facts.st_blocks * 512 for facts in in_tree(directory))


def deleted(processes: int, devices: Set[int]) -> Iterator[os.stat_result]:
    """Yield the facts about deleted files, on one of the devices, that processes of a /proc have open."""
    seen: Set[Tuple[int, int]] = set()
    for process in filter(str.isdigit, os.listdir(processes)):
        for facts in open_files(processes, process):
            file = facts.st_dev, facts.st_ino
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0 and facts.st_dev in devices and file not in seen:
                seen.add(file)
                yield facts


def open_files(processes: int, process: str) -> List[os.stat_result]:
    """Return the facts about a process's open files; none if it has ended or may not be inspected."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        descriptors = os.open(process + "/fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=processes)
        try:
            for name in os.listdir(descriptors):
                with suppress(FileNotFoundError, ProcessLookupError):
                    found.append(os.stat(name, dir_fd=descriptors))
        finally:
            os.close(descriptors)
    return found
