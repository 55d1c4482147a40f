"""The directory of states and layers, and functions that read the mounts recorded in a state."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Set, Tuple

from .frames import Json, Refused
from .removing import remove_tree

FOLDERS = ("layers", "flat", "states", "imports", "leases", "repositories", "building", "users")
UNCOUNTED = ("__pycache__", ".pytest_cache")
"""Directories left out of digests: caches that can be made again from other files."""


def new_id() -> str:
    """Return a new unique name."""
    return os.urandom(8).hex()


def hashed(value: Any) -> str:
    """Return the hash of a JSON value; it does not depend on the order of keys."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


class Store:
    """A directory of states and layers. Several guests can use it at the same time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        for name in FOLDERS:
            os.makedirs(os.path.join(self.path, name), exist_ok=True)

    def at(self, *names: str) -> str:
        """Return a path in the store."""
        return os.path.join(self.path, *names)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the store: no other guest saves, discards, sweeps or claims in the block."""
        descriptor = os.open(self.at("lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def load(self, name: str) -> Json:
        """Load a state."""
        try:
            with open(self.at("states", name + ".json")) as file:
                state: Json = json.load(file)
        except FileNotFoundError as error:
            raise Refused("missing", "there is no state %s: it was discarded, or never made" % name) from error
        except ValueError as error:  # the machine crashed before the file was on disk
            raise Refused("missing", "the state %s is damaged" % name) from error
        return state

    def save(self, state: Json) -> Json:
        """Write a state atomically and return its id and digest."""
        self.write(self.at("states", state["id"] + ".json"), json.dumps(state))
        return {"id": state["id"], "digest": state["digest"]}

    def write(self, path: str, text: str) -> None:
        """Write a file atomically."""
        temporary = "%s.%s" % (path, new_id())
        with open(temporary, "w") as file:
            file.write(text)
        os.rename(temporary, path)

    def lowers(self, mount: Json, layers: Optional[int] = None) -> List[str]:
        """List a mount's directories, top-most first, with only its lowest `layers` layers if that is given."""
        chain = mount["chain"] if layers is None else mount["chain"][:layers]
        return [self.at(name) for name in reversed(chain)] + [self.at(mount["lower"])]

    def names(self) -> List[str]:
        """List the names of all states."""
        return [name[: -len(".json")] for name in os.listdir(self.at("states")) if name.endswith(".json")]

    def discard(self, names: List[str]) -> None:
        """Remove states and the files that no other state needs."""
        with self.locked():
            unneeded = self.forget(names)
        self.remove(unneeded)

    def forget(self, names: List[str]) -> Set[str]:
        """Remove states; return the directories that no state needs any more. The store must be locked."""
        unneeded: Set[str] = set().union(*(needs(self.load(name)) for name in names))
        for name in names:
            os.unlink(self.at("states", name + ".json"))
        for other in self.names() if unneeded else ():
            unneeded -= needs(self.load(other))
            if not unneeded:
                break
        return {gone for path in unneeded for gone in self.taken_away(path)}

    def taken_away(self, path: str) -> List[str]:
        """Free the name of something that no state needs; return the directory that is left to remove, if any. A merged
        layer is renamed, because another state may soon need one with the same name. The store must be locked."""
        if path.startswith("repositories/"):
            os.unlink(self.at(path))
            return []
        if path.startswith("flat/"):
            home = os.path.dirname(path)
            path = "%s.%s" % (home, new_id())
            os.rename(self.at(home), self.at(path))
        return [path]

    def remove(self, directories: Set[str]) -> None:
        """Remove the directories that `forget` returned."""
        for path in directories:
            remove_tree(self.at(path))
            if path.startswith("layers/"):
                remove_empty(os.path.dirname(self.at(path)))


def needs(state: Json) -> Set[str]:
    """Return the paths in its own store that a state needs, besides its own file."""
    names = {name for mount in state["mounts"] for name in [*mount["chain"], mount["lower"]]}
    found = {name for name in names if name.startswith(("layers/", "flat/", "imports/"))}
    return found | ({"repositories/%s.json" % state["repository"]} if "repository" in state else set())


def remove_empty(path: str) -> None:
    """Remove a directory if it is empty."""
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
            raise


def digest_of(state: Json) -> str:
    """Return the digest of the base and of everything that differs from it; order and times do not matter."""
    counted = [
        (mount["target"], path, entry)
        for mount in state["mounts"]
        for path, entry in mount["delta"].items()
        if not any(name in UNCOUNTED for name in path.split("/"))
    ]
    return hashed([state["base"], sorted(counted)])


def home(targets: List[str], workdir: str) -> Tuple[str, str]:
    """Return the mount that holds the workspace, and the workspace's path in it; "" if it is the whole mount."""
    above = [target for target in targets if (workdir + "/").startswith(target.rstrip("/") + "/")]
    target = max(above, key=len)
    return target, workdir[len(target.rstrip("/")) :].strip("/")


def home_of(state: Json) -> Tuple[Json, str]:
    """As `home`, but return the state's entry for the mount."""
    target, folder = home([entry["target"] for entry in state["mounts"]], state["workdir"])
    entry: Json = next(entry for entry in state["mounts"] if entry["target"] == target)
    return entry, folder


def near(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it, or above it."""
    return not folder or (path + "/").startswith(folder + "/") or folder.startswith(path + "/")


def differing_in(folder: str, one: Json, other: Json) -> List[str]:
    """List the paths of a mount, at, below or above a folder, at which two states can differ."""
    before, after = home_of(one)[0]["delta"], home_of(other)[0]["delta"]
    both = sorted(path for path in set(before) | set(after) if path and near(path, folder))
    return [path for path in both if before.get(path) != after.get(path)]


def covered(wanted: List[str], paths: List[str]) -> List[str]:
    """List the `paths` that are at or below a wanted path, and the wanted paths that are below one of `paths`."""
    found = [path for path in paths if any((path + "/").startswith(name + "/") for name in wanted)]
    return found + [name for name in wanted if any(name.startswith(path + "/") for path in paths)]


def upper_and_work(place: str, number: int) -> Tuple[str, str]:
    """Return the overlay's upper and work directories for one mount of a lease."""
    return os.path.join(place, "upper", str(number)), os.path.join(place, "work", str(number))
