"""Read-only views of a state's files, without a lease."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Dict, Iterator, List, Tuple

from .frames import Json
from .kernel import overlay
from .store import Store

KEPT = 4
"""The number of base views that are kept open."""
LATE: List[int] = []
"""Descriptors of views that are not used any more. Closing them is slow, so they are closed after the reply to the
current request."""


def close_late() -> None:
    """Close the descriptors of views that are not used any more."""
    while LATE:
        os.close(LATE.pop())


def seen(lowers: List[str], spare: str) -> List[int]:
    """Open a read-only view of directories stacked on each other, top-most first, which is not mounted anywhere. Return
    the descriptor of its root, followed by others to close together with it."""
    if len(lowers) == 1:
        return [os.open(lowers[0], os.O_RDONLY | os.O_DIRECTORY)]
    tree = overlay(lowers, "", "", spare)
    return [os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=tree), tree]


def root_of(tree: int) -> int:
    """Open the root of a detached mount and close the mount. Nothing that is mounted over it elsewhere is visible."""
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=tree)
    finally:
        os.close(tree)


class Bases:
    """Views of base states, which most comparisons need. They are kept open because mounting and unmounting one takes
    as long as comparing an edit."""

    def __init__(self, store: Store, spare: str) -> None:
        self.store, self.spare = store, spare
        self.kept: Dict[Tuple[str, ...], List[int]] = {}

    @contextmanager
    def look_at(self, mount: Json) -> Iterator[int]:
        """As `view`, for a mount of a state; the view is kept open if the mount is the same as in the base."""
        lowers, chain = self.store.lowers(mount), mount["chain"]
        if len(chain) > mount["base"] or any("flat/" in name for name in chain):  # merged layers can be replaced
            with view(lowers, self.spare) as root:
                yield root
        else:
            yield self._kept(tuple(lowers))

    def _kept(self, lowers: Tuple[str, ...]) -> int:
        opened = self.kept.pop(lowers, None)
        if opened is None:
            if len(self.kept) == KEPT:
                LATE.extend(self.kept.pop(next(iter(self.kept))))  # the least recently used view
            opened = seen(list(lowers), self.spare)
        self.kept[lowers] = opened
        return opened[0]


@contextmanager
def view(lowers: List[str], spare: str) -> Iterator[int]:
    """Open the root of a view for the block, as `seen` does."""
    opened = seen(lowers, spare)
    try:
        yield opened[0]
    finally:
        LATE.extend(opened)
