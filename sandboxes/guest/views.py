"""Looking at a state's files without a lease on it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Dict, Iterator, List, Tuple

from .frames import Json
from .kernel import overlay
from .store import Store

KEPT = 4
"""Views of bases that are kept open."""


def seen(lowers: List[str], spare: str) -> int:
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


class Bases:
    """Views of what states are compared with, which is the same again and again, kept open: to mount one and to give it
    back takes as long as to look at an edit."""

    def __init__(self, store: Store, spare: str) -> None:
        self.store, self.spare = store, spare
        self.roots: Dict[Tuple[str, ...], int] = {}

    @contextmanager
    def look_at(self, mount: Json) -> Iterator[int]:
        """As `view`, of a state's mount; kept open where that is its base."""
        lowers, chain = self.store.lowers(mount), mount["chain"]
        if len(chain) > mount["base"] or any("flat/" in name for name in chain):  # those are removed and made again
            with view(lowers, self.spare) as root:
                yield root
        else:
            yield self._kept(tuple(lowers))

    def _kept(self, lowers: Tuple[str, ...]) -> int:
        root = self.roots.pop(lowers, None)
        if root is None:
            if len(self.roots) == KEPT:
                os.close(self.roots.pop(next(iter(self.roots))))  # the one that was not asked for for longest
            root = seen(list(lowers), self.spare)
        self.roots[lowers] = root
        return root


@contextmanager
def view(lowers: List[str], spare: str) -> Iterator[int]:
    """As `seen`, for the block."""
    root = seen(lowers, spare)
    try:
        yield root
    finally:
        os.close(root)
