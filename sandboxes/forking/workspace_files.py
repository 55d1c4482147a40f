"""Reading a checkout of this machine: as a tar stream, and what git tracks in it. It is never written."""

from __future__ import annotations

import io
import logging
import os
import stat
import tarfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandboxes import SandboxError
from sandboxes.git.foreign import locate, opened
from sandboxes.git.git_dir import detached
from sandboxes.guest.taken import MAX_NESTING

__all__ = ["Repository", "pack", "repository", "weight"]

_RUN = {"journal.jsonl", "blobs"}
"""A directory that holds both keeps a run of Ramify: states, and copies of this checkout."""
_SHOWN = 60
"""Characters of a path that is too long."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """What a patch has to know of a repository besides its files."""

    tracked: tuple[str, ...] | None = None
    """None: this is no repository."""
    exclude: str = ""
    """The rules in its `info/exclude`."""


def repository(path: Path) -> Repository:
    """The repository that has its root at `path`."""
    found = locate(path)
    if found is None or found.work_tree != path.resolve():
        return Repository()
    try:
        with opened(found) as view:
            return Repository(names(view.git.run("ls-files", "-z")), found.exclude)
    except SandboxError as error:
        log.warning("what git tracks in %s is not known: %s", path, error)
        return Repository()


def names(listing: bytes) -> tuple[str, ...]:
    """The paths of a listing that ends each with a NUL."""
    return tuple(os.fsdecode(name) for name in listing.split(b"\0") if name)


def pack(
    root: Path,
    tracked: Collection[str],
    leave_out: Collection[Path],
    stream: IO[bytes],
    owner: tuple[int, int] = (0, 0),
) -> tuple[str, ...]:
    """Write `root` as a tar whose files belong to `owner`; what was skipped because it is no file, directory or link.

    Byte code is left out unless it is tracked: its time stamps would vouch for files that change within a second. So
    are runs of Ramify that are kept there. A file `.git` is replaced by the git directory that it names, if that lies
    elsewhere (`sandboxes.git.git_dir`).

    Raises:
        SandboxError: a file cannot be read.
    """
    skipped = []
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for source, name in _copied(root, frozenset(tracked), frozenset(leave_out)):
            if isinstance(source, bytes):
                _add_text(archive, source, name, owner)
            elif not _add(archive, source, name, owner):
                skipped.append(name)
    return tuple(skipped)


def weight(root: Path, leave_out: Collection[Path]) -> int:
    """Bytes of the files that `pack` would write.

    Raises:
        SandboxError: a directory cannot be read.
    """
    return sum(_size(source) for source, _ in _copied(root, frozenset(), frozenset(leave_out)))


def _size(source: Path | bytes) -> int:
    if isinstance(source, bytes):
        return len(source)
    with suppress(OSError):  # `pack` will name it
        facts = source.lstat()
        return facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return 0


def _copied(root: Path, tracked: frozenset[str], leave_out: frozenset[Path]) -> Iterator[tuple[Path | bytes, str]]:
    """Everything that a copy is made of, parents first, and its name in the copy."""
    for path, name in _walk(root, ".", tracked, frozenset(map(str, leave_out))):
        if name.endswith((".pyc", ".pyo")) and "__pycache__" in name and name not in tracked:
            continue
        instead = detached(path.parent, root) if path.name == ".git" else []
        for source, below in instead:
            called = f"{name}/{below}" if below else name
            if isinstance(source, bytes) or below in ("", "info"):
                yield source, called
            else:
                yield from _walk(source, called)
        if not instead:
            yield path, name


def _walk(
    top: Path, name: str, tracked: frozenset[str] = frozenset(), leave_out: frozenset[str] = frozenset()
) -> Iterator[tuple[Path, str]]:
    """A path and every one below, parents first, with names that begin with `name`.

    Raises:
        SandboxError: a directory cannot be read; directories are nested too deep for a state.
    """
    waiting = [(str(top), name, top.is_dir())]
    while waiting:
        path, name, is_directory = waiting.pop()
        if name.count("/") > MAX_NESTING:
            raise SandboxError(
                f"cannot copy {top} into the sandbox: directories are nested more than {MAX_NESTING} deep in "
                f"{name[:_SHOWN]}...; move them away"
            )
        entries = _entries(path) if is_directory else []
        if path != str(top) and {entry.name for entry in entries} >= _RUN and f"{name}/journal.jsonl" not in tracked:
            continue
        yield Path(path), name
        prefix = "" if name == "." else f"{name}/"
        waiting += [
            (entry.path, prefix + entry.name, entry.is_dir(follow_symlinks=False))
            for entry in entries
            if entry.path not in leave_out
        ]


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """The last one first."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError as error:
        raise _uncopied(directory, error) from error


def _add(archive: tarfile.TarFile, path: Path, name: str, owner: tuple[int, int]) -> bool:
    try:
        facts = path.lstat()
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
            return False
        entry = archive.gettarinfo(path, name)
        entry.uid, entry.gid = owner
        entry.uname = entry.gname = ""
        if entry.isreg():
            with path.open("rb") as file:
                archive.addfile(entry, file)
        else:
            archive.addfile(entry)
    except OSError as error:
        raise _uncopied(path, error) from error
    return True


def _add_text(archive: tarfile.TarFile, text: bytes, name: str, owner: tuple[int, int]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text), 0o644
    entry.uid, entry.gid = owner
    archive.addfile(entry, io.BytesIO(text))


def _uncopied(path: Path | str, error: OSError) -> SandboxError:
    return SandboxError(f"cannot copy {path} into the sandbox ({error.strerror or error}); fix it or move it away")
