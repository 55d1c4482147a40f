"""Entries of the shared area: states that several runs' bases stand on. Built once, and expired by the host's word."""

from __future__ import annotations

import fcntl
import os
from typing import List, Set, Tuple

from .disk_usage import used_bytes
from .frames import Json
from .removing import remove_tree
from .store import Store, hashed


def reserve(store: Store, request: Json) -> Tuple[Json, bytes]:
    """Whether the entry is built, and whether it is ours to build now: it stays so until this guest ends."""
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
    """The entry, which another store's states stand on from now on."""
    with store.locked():
        entry = store.load(name)
        os.utime(store.at("states", name + ".json"))
        os.makedirs(store.at("users", name), exist_ok=True)
        store.write(store.at("users", name, hashed(user)), user)
    return entry


def listing(store: Store) -> Tuple[Json, bytes]:
    """Every entry: its size, when it was last used (seconds of the clock), and the stores that stand on it."""
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
    """The stores that stand on an entry."""
    place = store.at("users", name)
    found = []
    for each in sorted(os.listdir(place)) if os.path.isdir(place) else ():
        with open(os.path.join(place, each)) as file:
            found.append(file.read())
    return found


def expire(store: Store, request: Json) -> Tuple[Json, bytes]:
    """Remove entries; `entries` has for each the stores that are known to be gone. One that any other uses stays."""
    with store.locked():
        going = [name for name, gone in request["entries"].items() if set(users(store, name)) <= set(gone)]
        for name in going:
            remove_tree(store.at("users", name))
        unneeded = store.forget(going)
    store.remove(unneeded)
    return {"expired": going}, b""


def usage(store: Store) -> int:
    """Bytes on disk of all states."""
    return size(store, {"layers", "flat", "imports"})


def size(store: Store, paths: Set[str]) -> int:
    """Bytes on disk of things in a store, by their paths in it."""
    total = 0
    for path in paths:
        if not path.startswith("repositories/"):
            directory = os.open(store.at(path), os.O_RDONLY | os.O_DIRECTORY)
            total += used_bytes(directory)
            os.close(directory)
    return total
