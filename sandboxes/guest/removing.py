"""Removes directories of any depth: an action can nest them deeper than a recursion could follow."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import List

from .entries import open_at


def remove_tree(path: str) -> None:
    """Remove a directory and all that is in it, as far as that is possible."""
    with suppress(OSError):
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(path)


def _empty(top: int) -> None:
    """Directories in directories are moved to the top before they are emptied in turn."""
    unused, count = os.urandom(8).hex(), 0
    waiting = _files_removed(top)
    while waiting:
        name = waiting.pop()
        with suppress(FileNotFoundError):
            directory = open_at(top, name, os.O_DIRECTORY)
            try:
                for inner in _files_removed(directory):
                    count += 1
                    moved = "%s-%d" % (unused, count)
                    os.rename(inner, moved, src_dir_fd=directory, dst_dir_fd=top)
                    waiting.append(moved)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=top)


def _files_removed(directory: int) -> List[str]:
    """Remove all but directories; those. Another process may be at the same work."""
    left = []
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                left.append(name)
            else:
                os.unlink(name, dir_fd=directory)
    return left
