"""What a sandbox is: whole-machine states that are forked, never undone.

A provider keeps *snapshots*. `at(snapshot)` leases a private fork of one; whatever happens in the fork is lost unless
`Sandbox.snapshot()` freezes it into a new snapshot. There is no undo: the only way back is `at(older_snapshot)`.

A snapshot is the whole file system that an action can reach (workspace, `/tmp`, HOME, installed packages). It holds no
processes: when `exec` returns, everything that it started is dead. A fork sees names, kinds, modes, owners, contents,
extended attributes and times of modification exactly as the fork that was frozen saw them at its end. Inode numbers,
times of last access and of status change are no part of a state. Hard links stay linked until a later fork
writes to one of them, since an overlay cannot keep the link. Nor can it rename a directory that an earlier state holds
(EXDEV; `mv` copies instead).

A command that fails is data, in `ExecResult`; failures of the sandbox itself are the exceptions of `sandboxes.errors`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from sandboxes.errors import (
    GitFailed,
    GitTooSlow,
    ImageMissing,
    PullLeft,
    RegistryBusy,
    RegistryDown,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    SetupFailed,
    SnapshotMissing,
    StateDamaged,
    StoreFull,
    TemplateLost,
)
from sandboxes.values import Change, ExecResult, Forked, Limits, Merge, Snapshot, Template, Workspace

__all__ = [
    "Change",
    "ExecResult",
    "Forked",
    "GitFailed",
    "GitTooSlow",
    "ImageMissing",
    "Limits",
    "Merge",
    "Provider",
    "PullLeft",
    "RegistryBusy",
    "RegistryDown",
    "Sandbox",
    "SandboxError",
    "SandboxLost",
    "SandboxUnavailable",
    "SetupFailed",
    "Snapshot",
    "SnapshotMissing",
    "StateDamaged",
    "StoreFull",
    "Template",
    "TemplateLost",
    "Workspace",
]


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
            SandboxError: no program can be started so: `argv` is empty, a variable's name is empty or holds `=`, or
                something holds a NUL or a lone surrogate. Nothing has run; the fork goes on.
            SandboxLost: the fork is gone (an earlier command timed out, or the guest died).
        """
        ...

    def perform(self, order: bytes, *, timeout_s: float) -> ExecResult:
        """Let a copy of the template do its work here, as `exec` does a command.

        Raises:
            TemplateLost: there is none, it ended, or it failed before the copy was in place.
        """
        ...

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """A regular file's content.

        Raises:
            FileNotFoundError, IsADirectoryError, PermissionError: as usual.
            OSError: not a regular file, or larger than `max_bytes`.
            SandboxError: no file can be called so: the path holds a NUL or a lone surrogate. As in `write`, `remove`.
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
        """Freeze the state; the lease goes on in a fresh fork of it, made when it is used again."""
        ...


class Provider(Protocol):
    """Keeps snapshots and leases forks of them. Thread-safe: many leases at once."""

    @property
    def tier(self) -> str:
        """One line for people: what isolates an action here, and whether states are exact."""
        ...

    @property
    def forked(self) -> Forked:
        """What was forked since the provider was made."""
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
            StateDamaged: the fork is not what was frozen, where the provider was told to check that.
        """
        ...

    def scratch(
        self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = (), template: Template | None = None
    ) -> AbstractContextManager[Sandbox]:
        """A fork to measure in: `base` everywhere outside the workspace, `snapshot`'s workspace, and in it the
        paths `put_back` (relative, files or directories) as they are in `base`, absent where `base` lacks them.

        With a `template` the fork can `perform`. It is started over `base` where none like it runs; a provider may
        have none.
        """
        ...

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """Every workspace path (ignored files too, directories not) that differs, sorted by path."""
        ...

    def diff(self, old: Snapshot, new: Snapshot, *, context: int = 3) -> bytes:
        """A git patch from `old` to `new` of the workspace, byte-exact, for `git apply -p1`, with so many unchanged
        lines around each change.

        New files that git would ignore, `.git` and nested repositories are left out, and new files of more than 64 MiB,
        which is said. Empty when nothing differs.

        Raises:
            SandboxError: a file that was there before has more than 64 MiB, or all that differ have more than 256.
        """
        ...

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Merge:
        """What two states made of the workspace of one base, put together as `git merge` does it; of each what `diff`
        would show of it, and nothing outside the workspace."""
        ...

    def discard(self, *snapshots: Snapshot) -> None:
        """Forget snapshots and free what no other snapshot needs.

        Raises:
            SnapshotMissing: one of them is forgotten already.
        """
        ...

    def retain(self, snapshots: Collection[Snapshot]) -> None:
        """Forget every snapshot in the store but these: what a process that was killed had frozen and told nobody."""
        ...

    def require_room(self, *, to_finish: bool = False) -> None:
        """Called before work that makes states: there is room for more of them. `to_finish`: the work is the last,
        and may use what is held in reserve.

        Raises:
            StoreFull: the disk is nearly full, or the states take more than `Limits.store_bytes`.
        """
        ...

    def close(self) -> None:
        """End every lease and process; snapshots stay on disk for the next provider on the same store. May be called
        while other threads use leases: they, and whoever asks for one afterwards, get SandboxLost."""
        ...
