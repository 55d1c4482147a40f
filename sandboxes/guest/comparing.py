"""Compares the workspaces of two states: answers the requests `compare` and `contents`."""

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .entries import at_or_below, exists, open_at, parent_of
from .frames import Json, Refused, reply_in_parts
from .store import Store, differing_in, home_of
from .views import Bases

MAX_RULES_BYTES = 1 << 20
"""The maximum size of a .gitignore."""


class Pair(NamedTuple):
    """Two states of one base, opened at the mounts that hold their workspaces."""

    old: Json
    new: Json
    one: int
    other: int
    folder: str
    """The workspace's folder below its mount; "" is the mount itself."""

    @property
    def top(self) -> str:
        """The prefix of all paths in the workspace, relative to the mount."""
        return self.folder + "/" if self.folder else ""


@contextmanager
def opened(store: Store, request: Json, bases: Bases) -> Iterator[Pair]:
    """Open the two states that a request names."""
    old, new = store.load(request["old"]), store.load(request["new"])
    if (old["base"], old["workdir"]) != (new["base"], new["workdir"]):
        raise Refused("sandbox", "%s and %s do not come from one base" % (old["id"], new["id"]))
    (before, folder), (after, _) = home_of(old), home_of(new)
    with bases.look_at(before) as one, bases.look_at(after) as other:
        yield Pair(old, new, one, other, folder)


def compare(store: Store, request: Json, bases: Bases) -> Tuple[Json, bytes]:
    """Handle a `compare` request."""
    with opened(store, request, bases) as pair:
        found = differing(pair.one, pair.other, differing_in(pair.folder, pair.old, pair.new))
        paths = [path[len(pair.top) :] for path in found if path.startswith(pair.top)]
        changes = [[path, *(look(root, pair.top + path) for root in (pair.one, pair.other))] for path in paths]
        facts = surroundings(pair.other, pair.top, paths) if request["rules"] else {}
    with open(store.at("repositories", pair.new["repository"] + ".json")) as file:
        repository = json.load(file)
    known = set(repository["tracked"] or ())
    facts.update(changes=changes, exclude=repository["exclude"], tracked=[path for path in paths if path in known])
    return facts, b""


def contents(store: Store, request: Json, bases: Bases) -> None:
    """Handle a `contents` request. The reply may be larger than memory."""
    with opened(store, request, bases) as pair:
        leaves = [(root, pair.top + path) for path in request["paths"] for root in (pair.one, pair.other)]
        sizes = [found[2] if found else 0 for found in (look(*leaf) for leaf in leaves)]
        reply_in_parts({}, sum(sizes), (part for leaf, size in zip(leaves, sizes) if size for part in parts(*leaf)))  # noqa: B905 - Python 3.8


def differing(one: int, other: int, paths: List[str]) -> List[str]:
    """List the paths, other than directories, at or below `paths` at which two views of one base differ."""
    found: Dict[str, None] = {}
    for path in paths:
        sides = [dict(at_or_below(view, path)) for view in (one, other)]
        if "" in sides[0] and "" in sides[1]:
            continue  # a directory on both sides: differences in it have their own paths
        for leaf in sorted(set(sides[0]) | set(sides[1])):
            if leaf and sides[0].get(leaf) != sides[1].get(leaf):
                found[leaf] = None
    return sorted(found)


def look(root: int, path: str) -> Optional[List[Any]]:
    """Return [kind, mode, size in bytes] of a path; None if it does not exist or is a directory."""
    with parent_of(root, path) as place:
        if place is None or not exists(*place):
            return None
        facts = os.lstat(place[1], dir_fd=place[0])
    kind = {stat.S_IFREG: "f", stat.S_IFLNK: "l", stat.S_IFDIR: "d"}.get(stat.S_IFMT(facts.st_mode), "o")
    size = facts.st_size if kind in ("f", "l") else 0
    return None if kind == "d" else [kind, stat.S_IMODE(facts.st_mode), size]


def parts(root: int, path: str) -> Iterator[bytes]:
    """Yield the content of an existing file, or the target of a link."""
    with parent_of(root, path) as place:
        assert place is not None
        if stat.S_ISLNK(os.lstat(place[1], dir_fd=place[0]).st_mode):
            yield os.fsencode(os.readlink(place[1], dir_fd=place[0]))
            return
        with os.fdopen(open_at(*place), "rb", 0) as file:
            yield from iter(lambda: file.read(1 << 20), b"")


def surroundings(root: int, top: str, paths: List[str]) -> Json:
    """Find the .gitignore files above the paths, and the nested repositories that contain some of the paths. Paths are
    relative to `top`, which ends in a slash or is empty."""
    ignores, nested = {}, []
    for folder in sorted({parent for path in paths for parent in parents(path)}):
        name = folder + ".gitignore"
        rules = look(root, top + name)
        if rules and rules[0] == "f":
            if rules[2] > MAX_RULES_BYTES:
                raise Refused("sandbox", "%s has %d bytes; at most %d are allowed" % (name, rules[2], MAX_RULES_BYTES))
            ignores[name] = b"".join(parts(root, top + name)).decode("utf-8", "surrogateescape")
        with parent_of(root, top + folder + ".git") as place:
            if folder and place and exists(*place):
                nested.append(folder)
    return {"ignores": ignores, "nested": nested}


def parents(path: str) -> List[str]:
    """List every directory above a path, "" first; the others end in a slash."""
    parts = path.split("/")[:-1]
    return ["".join(part + "/" for part in parts[:count]) for count in range(len(parts) + 1)]
