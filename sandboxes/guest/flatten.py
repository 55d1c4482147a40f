"""Merges many layers into one, so that a chain stays short no matter how deep a tree grows.

A mount shows the same files with a merged layer as with the layers that it replaces. A merged layer is named after
them, so that all states that are built on them share it. It is made when a state is frozen: the chain of an existing
state never changes.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack
from typing import Dict, List, Optional, Tuple

from .duplicate import duplicate, imitate
from .entries import exists, is_opaque, open_at, open_directory
from .frames import Json
from .store import Store, hashed, new_id
from .views import view

SPAN = 32
"""The number of layers that are merged at once. Up to 32 * 32 levels, a chain has at most twice as many layers above
its base; deeper trees merge merged layers again."""


def shortened(store: Store, mount: Json, spare: str) -> Json:
    """Return the same mount with a chain that is short enough. The store must be locked."""
    while True:
        own = mount["chain"][mount["base"] :]
        merged = sum(name.startswith("flat/") for name in own)
        if len(own) - merged > SPAN:
            start = mount["base"] + merged
        elif merged > SPAN:
            start = mount["base"]
        else:
            return mount
        layer = _merged(store, mount, start, spare)
        mount = {**mount, "chain": [*mount["chain"][:start], layer, *mount["chain"][start + SPAN :]]}


def _merged(store: Store, mount: Json, start: int, spare: str) -> str:
    """Return the merged layer of SPAN layers of a chain, and make it if it does not exist."""
    names = mount["chain"][start : start + SPAN]
    home = store.at("flat", hashed(names))
    if not os.path.exists(home):
        building = "%s.%s" % (home, new_id())
        try:
            for part in ("layer", "names"):
                os.makedirs(os.path.join(building, part))
            with view(store.lowers(mount, start), spare) as below:
                merge([store.at(name) for name in reversed(names)], below, building)
            os.rename(building, home)
        except OSError:
            shutil.rmtree(building, ignore_errors=True)
            raise
    return "flat/%s/layer" % os.path.basename(home)


def merge(layers: List[str], below: int, place: str) -> None:
    """Copy layers, top-most first, into `place`/layer; `below` is a view of everything under them."""
    with ExitStack() as opened:

        def directory(path: str) -> int:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, descriptor)
            return descriptor

        parts, target = [directory(layer) for layer in layers], directory(os.path.join(place, "layer"))
        merging = Merge(directory(os.path.join(place, "names")))
        merging.fill(parts, below, target)
        merging.restore_link_counts()
        imitate(parts[0], target, ".")


class Merge:
    """Copies directories that are stacked on each other into one."""

    def __init__(self, names: int) -> None:
        self.names = names
        """A directory for extra names of files, which keep each file's number of hard links unchanged."""
        self.linked: Dict[Tuple[int, int], int] = {}

    def fill(self, parts: List[int], below: Optional[int], target: int) -> None:
        """Copy the parts of one directory, top-most first. `below`: what shows through all of them, if anything."""
        for name in sorted(set().union(*(os.listdir(part) for part in parts))):
            holders = [part for part in parts if exists(part, name)]
            facts = os.lstat(name, dir_fd=holders[0])
            if stat.S_ISDIR(facts.st_mode):
                self._directory(holders, below, target, name)
            elif not stat.S_ISCHR(facts.st_mode) or facts.st_rdev != 0:
                self._leaf(holders[0], target, name, facts)
            elif below is not None and exists(below, name):
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=target)

    def _directory(self, holders: List[int], below: Optional[int], target: int, name: str) -> None:
        with ExitStack() as opened:
            parts, hides = [], False
            for holder in holders:
                part = open_directory(holder, name)
                if part is not None:
                    opened.callback(os.close, part)
                    parts.append(part)
                hides = part is None or is_opaque(part)
                if hides:
                    break
            under = open_directory(below, name) if below is not None and not hides else None
            if under is not None:
                opened.callback(os.close, under)
            os.mkdir(name, dir_fd=target)
            made = open_at(target, name, os.O_DIRECTORY)
            opened.callback(os.close, made)
            if hides:
                os.setxattr(made, "user.overlay.opaque", b"y")
            self.fill(parts, under, made)
        imitate(holders[0], target, name)

    def _leaf(self, source: int, target: int, name: str, facts: os.stat_result) -> None:
        if facts.st_nlink == 1:
            duplicate(source, target, name)
            return
        file = (facts.st_dev, facts.st_ino)
        if file not in self.linked:
            self.linked[file] = facts.st_nlink
            duplicate(source, target, name)
            os.link(name, _first(file), src_dir_fd=target, dst_dir_fd=self.names, follow_symlinks=False)
        else:
            os.link(_first(file), name, src_dir_fd=self.names, dst_dir_fd=target, follow_symlinks=False)

    def restore_link_counts(self) -> None:
        """Give every file as many names (hard links) as its original has."""
        for file, wanted in self.linked.items():
            first = _first(file)
            more = wanted - os.lstat(first, dir_fd=self.names).st_nlink
            for number in range(more):
                other = "%s-%d" % (first, number)
                os.link(first, other, src_dir_fd=self.names, dst_dir_fd=self.names, follow_symlinks=False)
            if more < 0:
                os.unlink(first, dir_fd=self.names)


def _first(file: Tuple[int, int]) -> str:
    return "%d-%d" % file
