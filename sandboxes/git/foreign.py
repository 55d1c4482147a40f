"""Finds the user's repositories without git, and reads them through a private git directory that borrows their content.

Invariant: their settings, hooks and index never reach git. A view has its own settings, and takes over only a few named
ones that affect content; it borrows commits and branches, and copies the rest.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sandboxes import GitTooSlow, SandboxError
from sandboxes.git.command import Git, users_excludes

_SMALL_BYTES = 16 << 20
"""The most bytes that are read from a small file in a git directory."""
STATUS_S = 30.0
_LATEST = (1 << 32) - 1
"""The latest time that an index can hold, in seconds."""
_TAKEN_OVER = (
    *("autocrlf", "checkstat", "eol", "filemode", "ignorecase", "precomposeunicode", "sharedrepository"),
    *("sparsecheckout", "sparsecheckoutcone", "symlinks", "trustctime"),
)
"""Settings of `core` that affect content; none of them names a program."""
_FORMATS = ("objectformat", "refstorage")
log = logging.getLogger(__name__)
_REFERENCES = ("refs", "packed-refs", "reftable")


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a repository."""

    work_tree: Path | None
    """The root of the checked-out files; None for a bare repository."""
    git_dir: Path
    """The directory with the HEAD and the index."""
    common_dir: Path
    """The directory with everything else. It differs from `git_dir` in a linked work tree."""

    @property
    def exclude(self) -> str:
        """The ignore rules in its `info/exclude`."""
        rules = _content(self.common_dir / "info" / "exclude") or b""
        return rules.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class View:
    """A repository that is open for reading."""

    git: Git
    """Works on the repository's content through Ramify's own directories."""
    settings: Mapping[str, str]
    """The repository's own settings by lower-case name, without included files; the last value of each."""
    work_tree: Path | None = None
    """As `Location.work_tree`."""

    def commit(self, name: str = "HEAD") -> str:
        """Return the full name of a commit; empty if it does not exist."""
        output = self.git.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", fine=(0, 1))
        return output.decode().strip()

    def dirty(self) -> bool:
        """Whether there are uncommitted changes or untracked files, other than a virtual environment. Submodules are
        not inspected.

        Filters do not run. A file with a filter counts as changed if its size or times differ, mostly as in git itself.

        Raises:
            GitFailed: git cannot tell.
        """
        try:
            changed = self._changed()
        except GitTooSlow as error:
            log.warning("%s; its files count as changed", error)
            return True
        if any(not entry.startswith(b" M ") for entry in changed):
            return True
        if not changed or not self._are_filtered([entry.removeprefix(b" M ") for entry in changed]):
            return bool(changed)
        os.utime(self.git.directory / "index", (_LATEST, _LATEST))  # no file is newer, so git does not read contents
        return bool(self._changed())

    def version(self) -> str:
        """Return the commit that is checked out, followed by a digest of the names, sizes and times of tracked files
        that differ from it, if any. Empty before the first commit.

        Raises:
            GitFailed: git cannot tell.
        """
        commit = self.commit()
        if not commit or self.work_tree is None:
            return commit
        try:
            changed = [entry for entry in self._changed() if not entry.startswith(b"?? ")]
        except GitTooSlow as error:
            log.warning("%s; uncommitted changes are not noticed", error)
            return commit
        facts = [(entry, _size_and_time(self.work_tree / os.fsdecode(entry[3:]))) for entry in changed]
        return f"{commit}+{sha256(repr(facts).encode()).hexdigest()[:16]}" if facts else commit

    def _changed(self) -> list[bytes]:
        """List the entries of `git status --porcelain`, without untracked virtual environments."""
        ignores = {"COUNT": "1", "KEY_0": "core.excludesFile", "VALUE_0": users_excludes()}
        listing = self.git.run(
            *("status", "--porcelain", "--no-renames", "--ignore-submodules=all", "-z"),
            env={f"GIT_CONFIG_{name}": value for name, value in ignores.items()},
            timeout_s=STATUS_S,
        )
        return [entry for entry in listing.split(b"\0") if entry and not self._is_environment(entry)]

    def _is_environment(self, entry: bytes) -> bool:
        """Whether an entry is an untracked virtual environment."""
        marker = Path(os.fsdecode(entry.removeprefix(b"?? ")), "pyvenv.cfg")
        return entry.startswith(b"?? ") and self.work_tree is not None and bool(_kind(self.work_tree / marker))

    def _are_filtered(self, paths: Sequence[bytes]) -> bool:
        """Whether all these files have a filter attribute."""
        listing = self.git.run("check-attr", "-z", "--stdin", "filter", stdin=b"".join(path + b"\0" for path in paths))
        return not {b"unspecified", b"unset"} & set(listing.split(b"\0")[2::3])


def locate(path: Path) -> Location | None:
    """Find the nearest repository at `path` or above it; None if there is none."""
    start = path.resolve()
    for folder in (start, *start.parents):
        if found := _at(folder):
            return found
    return None


def _at(folder: Path) -> Location | None:
    """Return the repository whose root, or whose git directory, is the folder."""
    marker = folder / ".git"
    if _kind(marker) == stat.S_IFDIR and _is_git_dir(marker):
        return Location(folder, marker, _common(marker))
    if _kind(marker) == stat.S_IFREG:
        line = os.fsdecode((_content(marker) or b"").rstrip(b"\r\n"))
        directory = folder / line.removeprefix("gitdir:").strip()
        if line.startswith("gitdir:") and _is_git_dir(directory):
            return Location(folder, directory, _common(directory))
    return Location(None, folder, folder) if _is_git_dir(folder) else None


def _is_git_dir(directory: Path) -> bool:
    folders = [_common(directory) / name for name in ("objects", "refs")]
    has_head = (directory / "HEAD").is_symlink() or _kind(directory / "HEAD") == stat.S_IFREG
    return has_head and all(_kind(folder) == stat.S_IFDIR for folder in folders)


def _common(git_dir: Path) -> Path:
    """Return the directory that a repository's work trees share."""
    named = _content(git_dir / "commondir")
    return git_dir / os.fsdecode(named.rstrip(b"\r\n")) if named else git_dir


@contextmanager
def opened(location: Location, *, writable: bool = False) -> Iterator[View]:
    """Open a view of a repository for the block. `writable`: new objects are written to the repository itself.

    Raises:
        SandboxError: its settings cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="ramify-git-") as directory:
        place = Path(directory)
        settings = _settings(location, place / "settings")
        git_dir = place / "git"
        git_dir.mkdir()
        (git_dir / "config").write_text(_config(settings))
        (git_dir / "HEAD").write_bytes(_head(location.git_dir))
        _borrow_objects(location.common_dir, git_dir, writable=writable)
        for name in _REFERENCES:
            if _kind(location.common_dir / name):
                (git_dir / name).symlink_to((location.common_dir / name).absolute())
        _copy_rules(location, git_dir)
        _copy_index(location.git_dir, git_dir)
        yield View(Git(git_dir, location.work_tree, guarded=True), settings, location.work_tree)


def _settings(location: Location, scratch: Path) -> dict[str, str]:
    git = Git(scratch)
    found = _parsed(git, location.common_dir / "config")
    if found.get("extensions.worktreeconfig", "").lower() in ("true", "yes", "on", "1"):
        found |= _parsed(git, location.git_dir / "config.worktree")
    return found


def _parsed(git: Git, file: Path) -> dict[str, str]:
    text = _content(file)
    if not text:
        return {}
    try:
        listing = git.run("config", "--file", "-", "--no-includes", "--null", "--list", stdin=text)
    except SandboxError as error:
        raise SandboxError(f"{file} is damaged ({error}); repair it, or clone the repository again") from error
    entries = [os.fsdecode(entry).partition("\n") for entry in listing.split(b"\0") if entry]
    return {name: value if there else "true" for name, there, value in entries}


def _config(settings: Mapping[str, str]) -> str:
    """The settings of a view. Fetch subprocesses see only these, so hooks are disabled here, too."""
    kept = {"hooksPath": os.devnull, "fsmonitor": "false", "bare": "false"}
    kept |= {name: _plain(settings[f"core.{name}"]) for name in _TAKEN_OVER if f"core.{name}" in settings}
    formats = {name: _plain(settings[f"extensions.{name}"]) for name in _FORMATS if f"extensions.{name}" in settings}
    kept["repositoryformatversion"] = "1" if formats else "0"
    sections = {"core": kept, "extensions": formats}
    return "".join(
        f"[{section}]\n" + "".join(f"\t{name} = {value}\n" for name, value in entries.items())
        for section, entries in sections.items()
    )


def _plain(value: str) -> str:
    """A setting's value if it is a single word (a boolean, a number or a name), else `false`."""
    return value if re.fullmatch(r"[A-Za-z0-9]{1,20}", value) else "false"


def _head(git_dir: Path) -> bytes:
    """The content of HEAD. In old repositories HEAD is a link."""
    head = git_dir / "HEAD"
    return b"ref: " + os.fsencode(head.readlink()) + b"\n" if head.is_symlink() else _content(head) or b"\n"


def _borrow_objects(common_dir: Path, git_dir: Path, *, writable: bool) -> None:
    theirs, ours = (common_dir / "objects").absolute(), git_dir / "objects"
    if writable:
        ours.symlink_to(theirs)
        return
    (ours / "info").mkdir(parents=True)
    quoted = os.fsencode(theirs).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    (ours / "info" / "alternates").write_bytes(b'"' + quoted + b'"\n')


def _copy_rules(location: Location, git_dir: Path) -> None:
    """Copy the files that define shallow commits, ignored files and line endings.

    Attributes can only name drivers that settings define, and the view has no such settings.
    """
    (git_dir / "info").mkdir()
    for folder, name in (
        (location.common_dir, "shallow"),
        (location.common_dir, "info/exclude"),
        (location.common_dir, "info/attributes"),
        (location.git_dir, "info/sparse-checkout"),
    ):
        if text := _content(folder / name):
            (git_dir / name).write_bytes(text)


def _copy_index(theirs: Path, ours: Path) -> None:
    """Copy the index with its time, which tells git for which files it must compare contents."""
    for file in (theirs / "index", *theirs.glob("sharedindex.*")):
        if _kind(file) == stat.S_IFREG:
            try:
                shutil.copy2(file, ours / file.name)
            except OSError as error:
                raise SandboxError(f"cannot read {file} ({error.strerror or error})") from error


def _content(path: Path) -> bytes | None:
    """A file's content, cut at `_SMALL_BYTES`; None if it is not a regular file. Never blocks."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(_SMALL_BYTES) if regular else None
    except (OSError, ValueError):  # a name may hold a NUL
        return None


def _size_and_time(path: Path) -> tuple[int, int] | None:
    """A file's size in bytes and time of change in ns; None if it does not exist."""
    try:
        facts = path.lstat()
    except (OSError, ValueError):
        return None
    return facts.st_size, facts.st_mtime_ns


def _kind(path: Path) -> int:
    """The file type at a path, following links; 0 if it does not exist."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):
        return 0
