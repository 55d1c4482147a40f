"""Turns the upper directories of an ended fork into layers, and records what differs from the base.

A layer is kept exactly as the fork left it: it is read here and never changed.
"""

from __future__ import annotations

import os
import stat
from typing import Dict, Optional, Tuple

from .entries import Entry, describe, exists, is_directory, is_opaque, open_at, open_directory
from .flatten import shortened
from .frames import Json
from .seal import taken
from .store import Store, digest_of, new_id, upper_and_work
from .views import Bases

GONE: Entry = ["gone", 0, "", ""]


def freeze(store: Store, state: Json, place: str, bases: Bases) -> Json:
    """Turn the upper directories of a finished lease into layers of a new state; return its id and digest."""
    name = new_id()
    mounts = [_freeze_mount(bases, entry, place, n, name) for n, entry in enumerate(state["mounts"])]
    for n, digest in enumerate(taken(place, len(mounts))):
        mounts[n] = {**mounts[n], "seal": digest}
    frozen = {**state, "id": name, "mounts": mounts}
    frozen["digest"] = digest_of(frozen)
    with store.locked():
        frozen["mounts"] = [shortened(store, mount, bases.spare) for mount in mounts]
        return store.save(frozen)


def _freeze_mount(bases: Bases, entry: Json, place: str, number: int, name: str) -> Json:
    store = bases.store
    upper = upper_and_work(place, number)[0]
    if not os.listdir(upper) and _root_of(upper) == _root_of(store.lowers(entry)[0]):
        return entry
    opened = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with bases.look_at({**entry, "chain": entry["chain"][: entry["base"]]}) as base:
            frozen = Freeze(entry["delta"])
            frozen.absorb(opened, base, "", False)
            frozen.put("", describe(opened, "."), describe(base, "."))
    finally:
        os.close(opened)
    layer = "layers/%s/%d" % (name, number)
    os.makedirs(store.at("layers", name), exist_ok=True)
    os.rename(upper, store.at(layer))
    return {**entry, "chain": [*entry["chain"], layer], "delta": frozen.delta}


def _root_of(directory: str) -> Tuple[Optional[Entry], int]:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return describe(opened, "."), os.fstat(opened).st_mtime_ns
    finally:
        os.close(opened)


class Freeze:
    """Reads a mount's upper directory, and collects what differs from the base in `delta`."""

    def __init__(self, delta: Dict[str, Entry]) -> None:
        self.delta = dict(delta)
        self.linked: Dict[Tuple[int, int], str] = {}

    def absorb(self, upper: int, base: Optional[int], path: str, fresh: bool) -> None:
        """Read one directory. `fresh`: no lower layer is visible through it."""
        for name in sorted(os.listdir(upper)):
            here = path + "/" + name if path else name
            facts = os.lstat(name, dir_fd=upper)
            if stat.S_ISDIR(facts.st_mode):
                self._absorb_directory(upper, base, name, here, fresh)
                continue
            self.replace(here, base, name)
            if not stat.S_ISCHR(facts.st_mode) or facts.st_rdev != 0:
                self.put(here, self._with_links(upper, name, here), _entry_of_base(base, name))
            elif base is not None and exists(base, name):
                self.delta[here] = GONE

    def _absorb_directory(self, upper: int, base: Optional[int], name: str, path: str, fresh: bool) -> None:
        directory = open_at(upper, name, os.O_DIRECTORY)
        below = open_directory(base, name) if base is not None else None
        try:
            if fresh or is_opaque(directory):
                fresh = True
                self.replace(path, base, name)
                for child in os.listdir(below) if below is not None else []:
                    self.delta[path + "/" + child] = GONE
            self.put(path, describe(upper, name), describe(base, name) if base is not None else None)
            self.absorb(directory, below, path, fresh)
        finally:
            os.close(directory)
            if below is not None:
                os.close(below)

    def _with_links(self, upper: int, name: str, path: str) -> Optional[Entry]:
        """Return the file's entry. If a file has several names (hard links), each entry contains the first of them."""
        entry, facts = describe(upper, name), os.lstat(name, dir_fd=upper)
        if entry is not None and facts.st_nlink > 1:
            entry[3] += " is %s" % self.linked.setdefault((facts.st_dev, facts.st_ino), path)
        return entry

    def put(self, path: str, entry: Optional[Entry], original: Optional[Entry]) -> None:
        """Record the entry at a path, unless it is the same in the base."""
        assert entry is not None
        if original == entry:
            self.delta.pop(path, None)
        else:
            self.delta[path] = entry

    def replace(self, path: str, base: Optional[int], name: str) -> None:
        """Forget all that was recorded at and below a path."""
        was = self.delta.pop(path, None)
        if (was and was[0] == "d") or (base is not None and is_directory(base, name)):
            for other in [other for other in self.delta if other.startswith(path + "/")]:
                del self.delta[other]


def _entry_of_base(base: Optional[int], name: str) -> Optional[Entry]:
    """Return the base's entry. One with several names never equals a fork's, because writing to it breaks the link."""
    entry = describe(base, name) if base is not None else None
    if entry is not None and base is not None and os.lstat(name, dir_fd=base).st_nlink > 1:
        entry[3] += " has other names"
    return entry
