"""What a sandbox is: whole-machine states that are forked, never undone.

A provider keeps *snapshots*. `at(snapshot)` leases a private fork of one; whatever happens in the fork is lost unless
`Sandbox.snapshot()` freezes it into a new snapshot. There is no undo: the only way back is `at(older_snapshot)`.

A snapshot is the whole file system that an action can reach (workspace, `/tmp`, HOME, installed packages). It holds no
processes: when `exec` returns, everything that it started is dead.

Errors (a command that fails is data, in `ExecResult`; these are failures of the sandbox itself):

    SandboxError
     +-- SandboxUnavailable     this machine cannot run such a sandbox; the message says what to change
     +-- ImageMissing           the image does not exist here
     +-- SnapshotMissing        the snapshot was discarded or never existed
     +-- SandboxLost            the fork is gone: a time-out threw it away, or its guest died
     +-- StoreFull              no space for another state
     +-- SetupFailed            a set-up command returned non-zero; carries its output
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

__all__ = [
    "Change",
    "ExecResult",
    "ImageMissing",
    "Limits",
    "Provider",
    "Sandbox",
    "SandboxError",
    "SandboxLost",
    "SandboxUnavailable",
    "SetupFailed",
    "Snapshot",
    "SnapshotMissing",
    "StoreFull",
    "Workspace",
]


class SandboxError(Exception):
    """Base class of every failure of a sandbox itself."""


class SandboxUnavailable(SandboxError):
    """This machine cannot run such a sandbox; the message says what to change."""


class ImageMissing(SandboxError):
    """The image does not exist on this engine."""


class SnapshotMissing(SandboxError):
    """The snapshot was discarded or never existed."""


class SandboxLost(SandboxError):
    """The fork is gone: a time-out threw it away, or its guest died."""


class StoreFull(SandboxError):
    """There is no space left for another state."""


class SetupFailed(SandboxError):
    """A set-up command returned non-zero; the message ends with the tail of its output."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one action may use. Every limit is enforced inside the sandbox, none depends on the caller's clock."""

    memory_bytes: int = 2 << 30
    pids: int = 256
    output_bytes: int = 1 << 20
    """Of stdout and of stderr, each: the head is kept, the rest is drained and counted."""
    disk_bytes: int = 2 << 30
    """What one action may add to the store."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the first snapshot is made of."""

    path: Path | None = None
    """A checkout on this machine. It is copied, never written. None: the image already holds the repository."""
    mount: str | None = None
    """Absolute path of the workspace inside. None: the same path as outside (namespace), `/workspace` (docker)."""
    image: str | None = None
    """Docker image; ignored by providers that use this machine's own files."""
    environment: tuple[str, ...] = ()
    """Shell commands that build what the tests need without looking at the workspace (`pip install` of pinned
    packages). Run with the network on, before the workspace is there; the result is cached across runs by content."""
    setup: tuple[str, ...] = ()
    """Shell commands run once, in order, with the network on, in the workspace (`pip install -e .`)."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of every action, over the provider's own small default (PATH, HOME, LANG)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A frozen state. A value: it may be kept, compared, written to a journal and used after a restart."""

    id: str
    digest: str
    """Hash of everything that differs from the base: equal digests mean equal states (times are not counted)."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. Non-zero exit, time-out and a killed process are data, never exceptions."""

    exit_code: int
    """The command's own; 128 + N when signal N ended it; 124 on a time-out."""
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    """How much was written in all; more than `len(stdout)` when the limit cut it."""
    stderr_bytes: int
    duration_s: float
    timed_out: bool = False
    """The deadline passed: everything the command started was killed and the fork was thrown away."""
    limit: Literal["", "memory", "pids", "disk"] = ""
    """The limit that ended the command, where that is known."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path of the workspace that differs between two snapshots."""

    path: str
    """Relative to the workspace, `/`-separated; bytes that are not UTF-8 are surrogate-escaped."""
    kind: Literal["added", "modified", "removed"]


class Sandbox(Protocol):
    """One leased fork. Not thread-safe; relative paths are relative to the workspace."""

    @property
    def workdir(self) -> str:
        """Absolute path of the workspace inside the sandbox."""
        ...

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> ExecResult:
        """Run a command to its end and kill all that it started.

        A program that does not exist is exit code 127, one that cannot be executed 126.

        Raises:
            SandboxLost: the fork is gone (an earlier command timed out, or the guest died).
        """
        ...

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """A regular file's content.

        Raises:
            FileNotFoundError, IsADirectoryError, PermissionError: as usual.
            OSError: not a regular file, or larger than `max_bytes`.
        """
        ...

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Create or replace a regular file; missing parents are made. The mode of an existing file is kept
        unless `executable` says otherwise.

        Raises:
            IsADirectoryError, NotADirectoryError, PermissionError: as usual.
        """
        ...

    def remove(self, path: str) -> None:
        """Delete a file, a symbolic link or a whole directory. A path that does not exist is left so."""
        ...

    def snapshot(self) -> Snapshot:
        """Freeze the state; the lease goes on in a fresh fork of it."""
        ...


class Provider(Protocol):
    """Keeps snapshots and leases forks of them. Thread-safe: many leases at once."""

    @property
    def tier(self) -> str:
        """One line for people: what isolates an action here, and whether states are exact."""
        ...

    def create(self, workspace: Workspace) -> Snapshot:
        """The base state: the workspace copied in, set-up commands run.

        Raises:
            SandboxUnavailable, ImageMissing, SetupFailed, StoreFull: see each.
        """
        ...

    def at(self, snapshot: Snapshot) -> AbstractContextManager[Sandbox]:
        """A private fork, thrown away at the end of the block.

        Raises:
            SnapshotMissing: there is no such snapshot in this store.
        """
        ...

    def scratch(
        self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = ()
    ) -> AbstractContextManager[Sandbox]:
        """A fork to measure in: `base` everywhere outside the workspace, `snapshot`'s workspace, and in it the
        paths `put_back` (relative, files or directories) as they are in `base`, absent where `base` lacks them.
        """
        ...

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """Every workspace path (ignored files too, directories not) that differs, sorted by path."""
        ...

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        """A git patch from `old` to `new` of the workspace, byte-exact, for `git apply -p1`.

        New files that git would ignore, `.git` and nested repositories are left out. Empty when nothing differs.
        """
        ...

    def discard(self, snapshot: Snapshot) -> None:
        """Forget a snapshot and free what no other snapshot needs."""
        ...

    def close(self) -> None:
        """End every lease and process; snapshots stay on disk for the next provider on the same store."""
        ...
