"""Digests of what a mount shows, for providers with `paranoid`: taken when a state is frozen, checked at each fork."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from typing import Any, Dict, List, Optional

from .entries import describe, exists, open_directory
from .frames import Json, Refused


class Seals:
    """The digests of one lease's mounts. All files are opened before the process enters the fork, because it cannot
    see the store there."""

    def __init__(self, place: str) -> None:
        self.note = os.open(os.path.join(place, "seals"), os.O_WRONLY | os.O_CREAT, 0o600)
        self.layers: List[List[int]] = []
        """The open layers of each mount, without its upper directory."""
        self.roots: List[int] = []

    def check(self, state: Json) -> None:
        """Check all mounts of a state, as the function `check` does."""
        for mount, root, layers in zip(state["mounts"], self.roots, self.layers):  # noqa: B905 - Python 3.8
            check(state, mount, root, layers)

    def take(self, uppers: List[int]) -> None:
        """Write the digests to a file for the process that freezes the fork."""
        every = zip(self.roots, uppers, self.layers)  # noqa: B905 - Python 3.8
        os.write(self.note, json.dumps([seal(root, [upper, *layers]) for root, upper, layers in every]).encode())


def taken(place: str, mounts: int) -> List[Optional[str]]:
    """Read the digests that a lease wrote; None for each mount if it wrote none."""
    try:
        with open(os.path.join(place, "seals")) as file:
            return json.loads(file.read() or "null") or [None] * mounts
    except FileNotFoundError:
        return [None] * mounts


def seal(view: int, layers: List[int]) -> str:
    """Return the digest of every path that a layer touches, as a view of the layers shows it: names, kinds, modes,
    owners, contents, attributes, modification times, link counts, and the other names in the same directory."""
    found: Dict[str, Any] = {}
    look(view, layers, "", found)
    summary = hashlib.blake2b(digest_size=16)
    for path in sorted(found):
        summary.update(os.fsencode(repr((path, found[path]))))
    return summary.hexdigest()


def look(view: int, layers: List[int], path: str, found: Dict[str, Any]) -> None:
    """Record a directory and the paths in it that the layers touch. Merging layers does not change the record."""
    names = sorted(os.listdir(view))
    found[path + "/"] = [describe(view, "."), os.fstat(view).st_mtime_ns, names]
    for name in names:
        holders = [layer for layer in layers if exists(layer, name)]
        if not holders:
            continue
        inside = open_directory(view, name)
        if inside is None:
            facts = os.lstat(name, dir_fd=view)
            found[path + "/" + name] = [describe(view, name), facts.st_mtime_ns, facts.st_nlink]
            continue
        with ExitStack() as opened:
            opened.callback(os.close, inside)
            parts = []
            for holder in holders:
                part = open_directory(holder, name)
                if part is not None:
                    opened.callback(os.close, part)
                    parts.append(part)
            look(inside, parts, path + "/" + name, found)


def check(state: Json, mount: Json, view: int, layers: List[int]) -> None:
    """Refuse a mount that does not show what it showed when its state was frozen."""
    if not mount.get("seal"):
        raise Refused("damaged", "the state %s was frozen without a digest to check" % state["id"])
    if seal(view, layers) != mount["seal"]:
        raise Refused("damaged", "the state %s is not what was frozen: %s differs" % (state["id"], mount["target"]))


def opened_all(directories: List[str]) -> List[int]:
    """Open each directory."""
    return [os.open(directory, os.O_RDONLY | os.O_DIRECTORY) for directory in directories]
