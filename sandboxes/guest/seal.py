"""Digests of what a mount shows, taken when a state is frozen and again at each of its forks: the paranoid way."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from typing import Any, Dict, List, Optional

from .entries import describe, exists, open_directory
from .frames import Json, Refused


class Seals:
    """The digests of one lease's mounts. All is opened before its process is in the fork, where it sees no store."""

    def __init__(self, place: str) -> None:
        self.note = os.open(os.path.join(place, "seals"), os.O_WRONLY | os.O_CREAT, 0o600)
        self.layers: List[List[int]] = []
        """Of each mount, without its upper directory."""
        self.roots: List[int] = []

    def check(self, state: Json) -> None:
        """As the function, for all mounts."""
        for mount, root, layers in zip(state["mounts"], self.roots, self.layers):  # noqa: B905 - Python 3.8
            check(state, mount, root, layers)

    def take(self, uppers: List[int]) -> None:
        """Leave the digests for whoever freezes the fork."""
        every = zip(self.roots, uppers, self.layers)  # noqa: B905 - Python 3.8
        os.write(self.note, json.dumps([seal(root, [upper, *layers]) for root, upper, layers in every]).encode())


def taken(place: str, mounts: int) -> List[Optional[str]]:
    """The digests that a lease left, None for each mount when it took none."""
    try:
        with open(os.path.join(place, "seals")) as file:
            return json.loads(file.read() or "null") or [None] * mounts
    except FileNotFoundError:
        return [None] * mounts


def seal(view: int, layers: List[int]) -> str:
    """Of everything that any of the layers touches, as it is seen in a view of them: names, kinds, modes, owners,
    contents, attributes, times of modification, how many names a file has, and what else is in the same directory."""
    found: Dict[str, Any] = {}
    look(view, layers, "", found)
    summary = hashlib.blake2b(digest_size=16)
    for path in sorted(found):
        summary.update(os.fsencode(repr((path, found[path]))))
    return summary.hexdigest()


def look(view: int, layers: List[int], path: str, found: Dict[str, Any]) -> None:
    """Note a directory and what the layers have in it. Merging layers changes nothing of what is noted."""
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
    """Refuse a mount of a state that does not show what it showed when it was frozen."""
    if not mount.get("seal"):
        raise Refused("damaged", "the state %s was frozen without a digest to check" % state["id"])
    if seal(view, layers) != mount["seal"]:
        raise Refused("damaged", "the state %s is not what was frozen: %s differs" % (state["id"], mount["target"]))


def opened_all(directories: List[str]) -> List[int]:
    """Each of them."""
    return [os.open(directory, os.O_RDONLY | os.O_DIRECTORY) for directory in directories]
