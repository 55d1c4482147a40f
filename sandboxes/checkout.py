"""Reading a checkout of this machine: as a tar stream, and what git tracks in it. It is never written."""

from __future__ import annotations

import logging
import os
import stat
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandboxes import SandboxError
from sandboxes.foreign import locate, opened

__all__ = ["Repository", "pack", "repository"]

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

    Byte code is left out unless it is tracked: its time stamps would vouch for files that change within a second.

    Raises:
        SandboxError: a file cannot be read.
    """
    skipped = []
    keep = frozenset(tracked)
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for path, name in _walk(root, "", frozenset(leave_out)):
            if name not in keep and name.endswith((".pyc", ".pyo")) and "__pycache__" in name:
                continue
            if not _add(archive, path, name, owner):
                skipped.append(name)
    return tuple(skipped)


def _walk(directory: Path, prefix: str, leave_out: frozenset[Path]) -> Iterator[tuple[Path, str]]:
    """Every path below, parents first."""
    if not prefix:
        yield directory, "."
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        path, name = Path(entry.path), prefix + entry.name
        if path in leave_out:
            continue
        yield path, name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, name + "/", leave_out)


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
        raise SandboxError(
            f"cannot copy {path} into the sandbox ({error.strerror or error}); fix it or move it away"
        ) from error
    return True
