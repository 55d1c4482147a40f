"""Unpacks workspaces that arrive as a tar."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from typing import Any, Tuple

from .entries import leaves
from .frames import Json, Refused, receive
from .store import Store, hashed, home, new_id


def import_tree(store: Store, request: Json) -> Tuple[Json, bytes]:
    """Handle an `import` request: receive the tar that follows it, unpack it into a new layer, and return the reply."""
    layer = "imports/" + new_id()
    folder = home([target for target, _ in request["mounts"]], request["workdir"])[1]
    top = os.path.join(store.at(layer), folder)
    os.makedirs(top)
    stream = Chunks()
    try:
        with tarfile.open(fileobj=io.BufferedReader(stream), mode="r|") as archive:
            times = [unpack(archive, member, top) for member in archive]
        for path, moment in reversed(times):
            os.utime(path, (moment, moment), follow_symlinks=False)
    finally:
        stream.drain()
    root = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    summary = sorted(leaves(root, "", directories=True))
    os.close(root)
    return {"layer": layer, "digest": hashed(summary)}, b""


class Chunks(io.RawIOBase):
    """A readable file with the payloads of the frames that follow a request, up to an empty payload."""

    def __init__(self) -> None:
        self.rest = memoryview(b"")
        self.ended = False

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        if not self.rest and not self.ended:
            self.rest = memoryview(receive()[1])
            self.ended = not self.rest
        size = min(len(buffer), len(self.rest))
        buffer[:size] = self.rest[:size]
        self.rest = self.rest[size:]
        return size

    def drain(self) -> None:
        """Read to the end."""
        while not self.ended:
            self.ended = not receive()[1]


def unpack(archive: Any, member: Any, root: str) -> Tuple[str, float]:
    """Unpack one member of a tar; return its path and its time."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("sandbox", "a path leads out of the workspace: %s" % member.name)
    path = os.path.join(root, *parts)
    if member.isdir():
        os.makedirs(path, exist_ok=True)
    elif member.issym():
        os.symlink(member.linkname, path)
        return path, member.mtime
    elif member.islnk():
        os.link(os.path.join(root, member.linkname), path)
    else:
        with open(path, "wb") as file:
            shutil.copyfileobj(archive.extractfile(member), file)
    os.chmod(path, member.mode & 0o7777)
    return path, member.mtime
