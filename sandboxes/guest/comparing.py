"""What differs between the workspaces of two states."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple

from .entries import at_or_below, describe, exists, open_at, parent_of
from .frames import Json, Refused
from .store import Store, differing_in, home_of
from .views import Bases


def compare(store: Store, request: Json, bases: Bases) -> Tuple[Json, bytes]:
    """The reply to a request of that name."""
    old, new = store.load(request["old"]), store.load(request["new"])
    if (old["base"], old["workdir"]) != (new["base"], new["workdir"]):
        raise Refused("sandbox", "%s and %s do not come from one base" % (old["id"], new["id"]))
    (before, folder), (after, _) = home_of(old), home_of(new)
    top = folder + "/" if folder else ""
    with bases.look_at(before) as one, bases.look_at(after) as other:
        found = differing(one, other, differing_in(folder, old, new))
        paths = [path[len(top) :] for path in found if path.startswith(top)]
        changes, payload = [], []
        for path in paths:
            sides = [read_entry(root, top + path, bool(request.get("content"))) for root in (one, other)]
            changes.append([path, *(side and side[0] for side in sides)])
            payload += [side[1] for side in sides if side]
        facts = surroundings(other, top, paths) if request.get("content") else {}
    with open(store.at("repositories", new["repository"] + ".json")) as file:
        repository = json.load(file)
    known = set(repository["tracked"] or ())
    facts.update(changes=changes, exclude=repository["exclude"], tracked=[path for path in paths if path in known])
    return facts, b"".join(payload)


def differing(one: int, other: int, paths: List[str]) -> List[str]:
    """Paths, not of directories, at or below the given ones at which two views of one base differ."""
    found: Dict[str, None] = {}
    for path in paths:
        sides = [dict(at_or_below(view, path)) for view in (one, other)]
        if "" in sides[0] and "" in sides[1]:
            continue  # a directory on both sides: what is in it differs by paths of its own
        for leaf in sorted(set(sides[0]) | set(sides[1])):
            if leaf and sides[0].get(leaf) != sides[1].get(leaf):
                found[leaf] = None
    return sorted(found)


def read_entry(root: int, path: str, content: bool) -> Optional[Tuple[List[Any], bytes]]:
    """[kind, mode, size] and the bytes of a leaf; None when none is there."""
    with parent_of(root, path) as place:
        entry = describe(*place) if place else None
        if place is None or entry is None or entry[0] == "d":
            return None
        data = b""
        if content and entry[0] == "l":
            data = os.fsencode(entry[2])
        elif content and entry[0] == "f":
            with os.fdopen(open_at(*place), "rb") as file:
                data = file.read()
        return [entry[0], entry[1], len(data)], data


def surroundings(root: int, top: str, paths: List[str]) -> Json:
    """The .gitignore files above the paths, and the nested repositories that hold some of them. Paths are relative to
    `top`, which ends in a slash or is empty."""
    ignores, nested = {}, []
    for folder in sorted({parent for path in paths for parent in parents(path)}):
        rules = read_entry(root, top + folder + ".gitignore", True)
        if rules and rules[0][0] == "f":
            ignores[folder + ".gitignore"] = rules[1].decode("utf-8", "surrogateescape")
        with parent_of(root, top + folder + ".git") as place:
            if folder and place and exists(*place):
                nested.append(folder)
    return {"ignores": ignores, "nested": nested}


def parents(path: str) -> List[str]:
    """Every directory above a path, "" first, each ending in a slash."""
    parts = path.split("/")[:-1]
    return ["".join(part + "/" for part in parts[:count]) for count in range(len(parts) + 1)]
