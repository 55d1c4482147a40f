"""Entries of the shared area: states that the bases of several runs are built on. The host decides when they expire."""

from __future__ import annotations

import fcntl
import os
from typing import List, Set, Tuple

from .disk_usage import used_bytes
from .frames import Json
from .removing import remove_tree
from .store import Store, hashed


def reserve(store: Store, request: Json) -> Tuple[Json, bytes]:
    """Handle a `reserve` request: reply whether the entry is built, and whether it is reserved for this guest to build.
    A reservation lasts until the guest ends."""
    descriptor = os.open(store.at("building", request["id"]), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return {"built": False, "ours": False}, b""
    built = os.path.exists(store.at("states", request["id"] + ".json"))
    if built:
        os.close(descriptor)
    return {"built": built, "ours": not built}, b""


def use(store: Store, name: str, user: str) -> Json:
    """Load an entry, and record that the store `user` has states that are built on it."""
    with store.locked():
        entry = store.load(name)
        os.utime(store.at("states", name + ".json"))
        os.makedirs(store.at("users", name), exist_ok=True)
        store.write(store.at("users", name, hashed(user)), user)
    return entry


def listing(store: Store) -> Tuple[Json, bytes]:
    """List every entry with its size, the time of its last use (seconds since the epoch) and the stores that use it."""
    with store.locked():
        states = [store.load(name) for name in store.names()]
        entries = {
            state["id"]: {
                "bytes": state["entry"],
                "used": os.stat(store.at("states", state["id"] + ".json")).st_mtime,
                "users": users(store, state["id"]),
            }
            for state in states
            if "entry" in state
        }
        return {"entries": entries}, b""


def users(store: Store, name: str) -> List[str]:
    """List the stores whose states are built on an entry."""
    place = store.at("users", name)
    found = []
    for each in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        with open(os.path.join(place, each)) as file:
            found.append(file.read())
    return found


def expire(store: Store, request: Json) -> Tuple[Json, bytes]:
    """Remove entries; `entries` maps each to stores that no longer exist. An entry that another store uses stays."""
    with store.locked():
        going = [name for name, gone in request["entries"].items() if set(users(store, name)) <= set(gone)]
        for name in going:
            remove_tree(store.at("users", name))
        unneeded = store.forget(going)
    store.remove(unneeded)
    return {"expired": going}, b""


def usage(store: Store) -> int:
    """Return the bytes on disk of all states."""
    return size(store, {"layers", "flat", "imports"})


def size(store: Store, paths: Set[str]) -> int:
    """Return the bytes on disk of the given paths in a store."""
    total = 0
    for path in paths:
        if not path.startswith("repositories/"):
            directory = os.open(store.at(path), os.O_RDONLY | os.O_DIRECTORY)
            total += used_bytes(directory)
            os.close(directory)
    return total
