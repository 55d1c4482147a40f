"""Removes directories of any depth: an action can nest them too deep for recursion."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import List

from .entries import open_at


def remove_tree(path: str) -> None:
    """Remove a directory and its contents, as far as possible."""
    with suppress(OSError):
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(path)


def _empty(top: int) -> None:
    """Remove the contents of a directory. Nested directories are moved to the top before they are emptied in turn."""
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
    """Remove the files in a directory and return the names of its directories. Another process may do the same."""
    left = []
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                left.append(name)
            else:
                os.unlink(name, dir_fd=directory)
    return left
