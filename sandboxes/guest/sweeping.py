"""Finds and removes what dead guests left behind."""

from __future__ import annotations

import fcntl
import os
from typing import Iterator, List

from .frames import Refused
from .store import Store, needs


def sweep(store: Store, shared: bool) -> List[str]:
    """List the directories that nobody needs, for removal in the background. Call it with the store locked, before this
    guest claims its directory.

    Unsaved work of a dead guest cannot be told from the work of a live one, so it is kept while any guest lives.
    """
    leases = [store.at("leases", name) for name in os.listdir(store.at("leases"))]
    dead = [path for path in leases if is_dead(path)]
    return dead if len(dead) < len(leases) else [*dead, *orphans(store, shared)]


def is_dead(lease: str) -> bool:
    """Whether the guest that owned this directory is gone."""
    try:
        descriptor = os.open(lease, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # another guest has already removed it
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def orphans(store: Store, shared: bool) -> Iterator[str]:
    """Yield directories that no state needs; unneeded files are removed at once. A shared area keeps only entries."""
    try:
        states = [store.load(name) for name in store.names()]
    except Refused:  # the needs of a damaged state are unknown, so everything is kept
        return
    kept = [state for state in states if "entry" in state or not shared]
    needed = {path for state in kept for path in [*needs(state), "states/%s.json" % state["id"]]}
    for folder in ("states", "repositories", "building"):
        for path in below(store, folder):
            if path not in needed:
                os.unlink(store.at(path))
    entries = {"users/" + state["id"] for state in kept}
    for path in below(store, "flat"):
        if path + "/layer" not in needed:
            yield from map(store.at, [path] if "." in path else store.taken_away(path + "/layer"))
    layers = [path for folder in below(store, "layers") for path in below(store, folder)]
    for path in [*layers, *below(store, "imports"), *below(store, "users")]:
        if path not in needed and path not in entries:
            yield store.at(path)


def below(store: Store, folder: str) -> List[str]:
    """List the contents of a folder of the store, as paths in the store."""
    return [folder + "/" + name for name in os.listdir(store.at(folder))]
