"""Reads and writes the files of a stopped container through the engine's archives, without running a program."""

from __future__ import annotations

import errno
import io
import os
import posixpath
import stat
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from sandboxes import SandboxError
from sandboxes.commit.manifest import Entry, Manifest, hash_of

if TYPE_CHECKING:
    from docker import DockerClient


_MOST_LINKS = 40
_GO_TYPES = {1 << 31: "d", 1 << 27: "l", 1 << 26: "o", 1 << 25: "o", 1 << 24: "o", 1 << 21: "o", 1 << 19: "o"}
"""File types by their bit in a file mode of Go, the engine's language."""
_ENGINES_OWN = ("/dev", "/proc", "/sys")
"""Directories that the engine creates again for each command; they are not part of a state."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The file type and attributes at a path, without following links."""

    kind: str
    mode: int
    size: int
    time_s: int
    target: str


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of files and the targets of links, by path."""

    contents: dict[str, bytes]
    large: dict[str, int]
    """The sizes of files that are too large to be read."""

    def size(self, path: str) -> int | None:
        """The size in bytes; None if the path is neither a file nor a link."""
        return len(self.contents[path]) if path in self.contents else self.large.get(path)


class Files:
    """The files of one container. Paths are absolute; links never lead outside the container."""

    def __init__(self, client: DockerClient, container: str) -> None:
        self._client, self._container = client, container

    def look(self, path: str) -> Facts | None:
        """The facts about a path; None if it does not exist.

        Raises:
            NotADirectoryError: one of its parents is a file.
        """
        from docker.errors import APIError
        from docker.utils import decode_json_header

        api = self._client.api
        if path in _ENGINES_OWN or path.startswith(tuple(f"{place}/" for place in _ENGINES_OWN)):
            return Facts("o", 0, 0, 0, "")
        address = f"{api.base_url}/v{api.api_version}/containers/{self._container}/archive"
        answer = api.head(address, params={"path": os.fsencode(path)}, timeout=api.timeout)
        if answer.status_code == 404:
            return None
        if not answer.ok:
            if self._is_file(posixpath.dirname(path)):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            raise APIError(f"cannot inspect {path}", response=answer)
        header = decode_json_header(answer.headers["X-Docker-Container-Path-Stat"])
        kind = next((kind for bit, kind in _GO_TYPES.items() if header["mode"] & bit), "f")
        time_s = int(datetime.fromisoformat(header["mtime"]).timestamp())
        return Facts(kind, header["mode"] & 0o777, header["size"], time_s, header["linkTarget"])

    def _is_file(self, path: str) -> bool:
        found = self.look(path) if path != "/" else None
        return found is not None and found.kind != "d"

    def resolve(self, path: str) -> tuple[str, Facts | None]:
        """The path after following links in its last component, and the facts about it."""
        for _ in range(_MOST_LINKS):
            found = self.look(path)
            if found is None or found.kind != "l":
                return path, found
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), found.target))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def read(self, path: str, max_bytes: int) -> bytes:
        """As `Sandbox.read`."""
        place, found = self.resolve(path)
        if found is None:
            if posixpath.dirname(place) != "/" and self._is_file(self.resolve(posixpath.dirname(place))[0]):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        _require_regular(found, path)
        if found.size > max_bytes:
            raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes", path)
        with self._archive(place) as members:
            for member in members:
                return _content(members, member)
        raise SandboxError(f"the engine gave no content for {path}")

    def write(self, path: str, data: bytes, executable: bool | None, owner: tuple[int, int], now: float) -> str:
        """As `Sandbox.write`; returns the resolved path. The time of an existing file advances by at least a second."""
        place, found = self.resolve(path)
        if found is not None:
            _require_regular(found, path)
        mode = found.mode if found else 0o644
        if executable is not None:
            mode = mode | 0o111 if executable else mode & ~0o111
        above, missing = self._deepest(posixpath.dirname(place), path)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as tar:
            for depth in range(1, len(missing) + 1):
                tar.addfile(_header("/".join(missing[:depth]), tarfile.DIRTYPE, 0o755, owner, int(now)))
            name = "/".join([*missing, posixpath.basename(place)])
            header = _header(name, tarfile.REGTYPE, mode, owner, max(int(now), found.time_s + 1 if found else 0))
            header.size = len(data)
            tar.addfile(header, io.BytesIO(data))
        self.put(above, archive.getvalue())
        return place

    def _deepest(self, folder: str, path: str) -> tuple[str, list[str]]:
        """The deepest existing directory on the way to a folder, and the names missing below it."""
        missing: list[str] = []
        while folder != "/":
            place, found = self.resolve(folder)
            if found is not None and found.kind == "d":
                return place, missing
            if found is not None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            missing.insert(0, posixpath.basename(folder))
            folder = posixpath.dirname(folder)
        return "/", missing

    def put(self, folder: str, archive: bytes | IO[bytes]) -> None:
        """Unpack a tar in an existing directory."""
        place: Any = os.fsencode(folder)  # the engine needs the raw bytes of the name
        self._client.api.put_archive(self._container, place, archive)

    def entry(self, path: str) -> Entry | None:
        """The manifest entry of a path; None if it does not exist."""
        found = self.look(path)
        if found is None or found.kind in ("d", "o"):
            return (found.kind, found.mode, "") if found else None
        with self._archive(path) as members:
            for member in members:
                return _entry(members, member)
        return None

    def tree(self, folder: str) -> Manifest:
        """The manifest of everything below a directory."""
        tree: Manifest = {}
        with self._archive(folder) as members:
            for member in members:
                name = _below(member.name)
                if not name:
                    continue
                linked = tree.get(_below(member.linkname)) if member.islnk() else None
                tree[name] = linked or _entry(members, member)
        return tree

    def contents(self, folder: str, paths: Collection[str], max_bytes: int) -> Contents:
        """The contents of some paths below a directory. Files larger than `max_bytes` are not read."""
        contents, large, linked = {}, {}, {}
        with self._archive(folder) as members:
            for member in members:
                name = _below(member.name)
                if member.size > max_bytes:
                    large[name] = member.size
                elif name in paths and member.islnk():
                    linked[name] = _below(member.linkname)
                elif name in paths:
                    contents[name] = os.fsencode(member.linkname) if member.issym() else _content(members, member)
        large |= {name: large[first] for name, first in linked.items() if first in large}
        contents |= {name: self.read(f"{folder}/{name}", max_bytes) for name in linked if name not in large}
        return Contents(contents, large)

    @contextmanager
    def some(self, folder: str, paths: Collection[str]) -> Iterator[IO[bytes]]:
        """A tar of some paths below a directory, with names relative to the root: the engine refuses links that lead
        above the directory in which it unpacks them."""
        top = folder.strip("/")
        linked = []
        with tempfile.TemporaryFile() as file:
            with (
                self._archive(folder) as members,
                tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar,
            ):
                for member in members:
                    name = _below(member.name)
                    if name not in paths:
                        continue
                    if member.islnk():
                        linked.append((name, member))
                        continue
                    _rename(member, f"{top}/{name}")
                    tar.addfile(member, members.extractfile(member) if member.isreg() else None)
                for name, member in linked:
                    data = self.read(f"{folder}/{name}", 1 << 40)
                    _rename(member, f"{top}/{name}")
                    member.linkname = ""
                    member.type, member.size = tarfile.REGTYPE, len(data)
                    tar.addfile(member, io.BytesIO(data))
            file.seek(0)
            yield file

    @contextmanager
    def _archive(self, path: str) -> Iterator[tarfile.TarFile]:
        chunks, _ = self._client.api.get_archive(self._container, os.fsencode(path), chunk_size=1 << 18)
        stream = io.BufferedReader(_Chunks(iter(chunks)), 1 << 18)
        with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8") as members:
            yield members


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stub says any buffer
        while not self._left:
            part = next(self._chunks, None)
            if part is None:
                return 0
            self._left = part
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def _require_regular(found: Facts, path: str) -> None:
    if found.kind == "d":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if found.kind != "f":
        raise OSError(errno.EINVAL, "not a regular file", path)


def _below(name: str) -> str:
    """A name in an archive of a directory, relative to that directory; "" for itself."""
    return name.partition("/")[2].rstrip("/")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


def _entry(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    mode = stat.S_IMODE(member.mode)
    if member.isreg():
        return "f", mode, hash_of(archive.extractfile(member) or io.BytesIO())
    if member.issym():
        return "l", 0o777, member.linkname
    return "d" if member.isdir() else "o", mode, "" if member.isdir() else member.type.decode()


def _header(name: str, kind: bytes, mode: int, owner: tuple[int, int], time_s: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.mode, header.mtime = kind, mode, time_s
    header.uid, header.gid = owner
    return header


def _rename(member: tarfile.TarInfo, name: str) -> None:
    """Rename a member. A long or non-ASCII name is also in its PAX headers, which would override the new name."""
    member.name = name
    member.pax_headers = {key: value for key, value in member.pax_headers.items() if key not in ("path", "linkpath")}


def directories(paths: Iterable[str], owner: tuple[int, int]) -> bytes:
    """A tar of empty directories."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as tar:
        for path in paths:
            tar.addfile(_header(path, tarfile.DIRTYPE, 0o755, owner, 0))
    return archive.getvalue()
