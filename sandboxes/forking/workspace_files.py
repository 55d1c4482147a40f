"""Reads a local checkout: its files as a tar stream, and which of them git tracks. The checkout is never written to."""

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
from sandboxes.guest.disk_usage import MAX_NESTING

_RUN = {"journal.jsonl", "blobs"}
"""A directory that contains both is a run of Ramify, with states and copies of the checkout."""
_SHOWN = 60
"""How many characters of a long path an error message shows."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """What is needed to make patches of a repository, besides its files."""

    tracked: tuple[str, ...] | None = None
    """None if this is not a repository."""
    exclude: str = ""
    """The ignore rules in its `info/exclude`."""


def repository(path: Path) -> Repository:
    """Return the facts about the repository whose root is `path`; empty ones if there is none."""
    location = locate(path)
    if location is None or location.work_tree != path.resolve():
        return Repository()
    try:
        with opened(location) as view:
            return Repository(names(view.git.run("ls-files", "-z")), location.exclude)
    except SandboxError as error:
        log.warning("git cannot list the tracked files of %s: %s", path, error)
        return Repository()


def names(listing: bytes) -> tuple[str, ...]:
    """Split a NUL-terminated listing into paths."""
    return tuple(os.fsdecode(name) for name in listing.split(b"\0") if name)


def pack(
    root: Path,
    tracked: Collection[str],
    leave_out: Collection[Path],
    stream: IO[bytes],
    owner: tuple[int, int] = (0, 0),
    folder: str = "",
) -> None:
    """Write `root` as a tar whose files belong to `owner` and lie in `folder`. Special files are skipped.

    Untracked byte code is left out, because its time stamps would wrongly match files that change within a second.
    Runs of Ramify are left out, too. A file `.git` is replaced by the git directory that it names, if that is outside
    `root` (`sandboxes.git.git_dir`).

    Raises:
        SandboxError: a file cannot be read.
    """
    above = f"{folder}/" if folder else ""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for source, name in _copied(root, frozenset(tracked), frozenset(leave_out)):
            if isinstance(source, bytes):
                _add_text(archive, source, above + name, owner)
            else:
                _add(archive, source, above + name, owner)


def weight(root: Path, leave_out: Collection[Path]) -> int:
    """Return the total bytes of the files that `pack` would write.

    Raises:
        SandboxError: a directory cannot be read.
    """
    return sum(_size(source) for source, _ in _copied(root, frozenset(), frozenset(leave_out)))


def _size(source: Path | bytes) -> int:
    if isinstance(source, bytes):
        return len(source)
    with suppress(OSError):  # `pack` reports it
        facts = source.lstat()
        return facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return 0


def _copied(root: Path, tracked: frozenset[str], leave_out: frozenset[Path]) -> Iterator[tuple[Path | bytes, str]]:
    """Yield every path or text to copy, with its name in the copy, parents first."""
    for path, name in _walk(root, ".", tracked, frozenset(map(str, leave_out))):
        if name.endswith((".pyc", ".pyo")) and "__pycache__" in name and name not in tracked:
            continue
        instead = detached(path.parent, root) if path.name == ".git" else []
        for source, below in instead:
            copied_name = f"{name}/{below}" if below else name
            if isinstance(source, bytes) or below in ("", "info"):
                yield source, copied_name
            else:
                yield from _walk(source, copied_name)
        if not instead:
            yield path, name


def _walk(
    top: Path, name: str, tracked: frozenset[str] = frozenset(), leave_out: frozenset[str] = frozenset()
) -> Iterator[tuple[Path, str]]:
    """Yield a path and everything below it, parents first, with names that start with `name`.

    Raises:
        SandboxError: a directory cannot be read, or directories are nested too deep for a state.
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
    """List the entries of a directory in reverse order."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError as error:
        raise _uncopied(directory, error) from error


def _add(archive: tarfile.TarFile, path: Path, name: str, owner: tuple[int, int]) -> None:
    try:
        facts = path.lstat()
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
            return
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


def _add_text(archive: tarfile.TarFile, text: bytes, name: str, owner: tuple[int, int]) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text), 0o644
    entry.uid, entry.gid = owner
    archive.addfile(entry, io.BytesIO(text))


def _uncopied(path: Path | str, error: OSError) -> SandboxError:
    return SandboxError(f"cannot copy {path} into the sandbox ({error.strerror or error}); fix it or move it away")
