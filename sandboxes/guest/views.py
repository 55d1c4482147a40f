"""Looking at a state's files without a lease on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from .kernel import overlay


def seen(lowers: list[str], spare: str) -> int:
    """What a mount of these directories, top-most first, shows: its root, read-only, mounted nowhere."""
    if len(lowers) == 1:
        return os.open(lowers[0], os.O_RDONLY | os.O_DIRECTORY)
    return root_of(overlay(lowers, "", "", spare))


def root_of(tree: int) -> int:
    """The root of a mount that is attached nowhere, to look at: without what may be mounted over it elsewhere."""
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=tree)
    finally:
        os.close(tree)


@contextmanager
def view(lowers: list[str], spare: str) -> Iterator[int]:
    """As `seen`, for the block."""
    root = seen(lowers, spare)
    try:
        yield root
    finally:
        os.close(root)
