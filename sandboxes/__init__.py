"""What a sandbox is: whole-machine states that are forked, never undone.

A provider keeps *snapshots*. `at(snapshot)` leases a private fork of one; whatever happens in the fork is lost unless
`Sandbox.snapshot()` freezes it into a new snapshot. There is no undo: the only way back is `at(older_snapshot)`.

A snapshot is the whole file system that an action can reach (workspace, `/tmp`, HOME, installed packages). It holds no
processes: when `exec` returns, everything that it started is dead. A fork sees names, kinds, modes, owners, contents,
extended attributes and modification times exactly as they were when the snapshot was frozen. Inode numbers, access
times and status change times are not part of a state. Hard links stay linked until a later fork writes to one of them,
since an overlay cannot keep the link. An overlay also cannot rename a directory that an earlier state holds
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
        """Run a command until it ends, then kill everything that it started.

        The exit code is 127 if the program does not exist, and 126 if it cannot be executed.

        Raises:
            SandboxError: no program can be started like this: `argv` is empty, a variable's name is empty or contains
                `=`, or a text contains a NUL or a lone surrogate. Nothing has run; the fork can still be used.
            SandboxLost: the fork is gone (an earlier command timed out, or the guest died).
        """
        ...

    def perform(self, order: bytes, *, timeout_s: float) -> ExecResult:
        """Run an order in a copy of the template in this fork, with the same guarantees as `exec`.

        Raises:
            TemplateLost: there is no template, it ended, or it failed before the copy was in place.
        """
        ...

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """Return the content of a regular file.

        Raises:
            FileNotFoundError, IsADirectoryError, PermissionError: as usual.
            OSError: not a regular file, or larger than `max_bytes`.
            SandboxError: no file can have this name: the path contains a NUL or a lone surrogate. `write` and `remove`
                raise it, too.
        """
        ...

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Create or replace a regular file, with any missing parent directories. An existing file keeps its mode
        unless `executable` is given.

        Raises:
            IsADirectoryError, NotADirectoryError, PermissionError: as usual.
        """
        ...

    def remove(self, path: str) -> None:
        """Delete a file, a symbolic link or a whole directory. A path that does not exist is ignored."""
        ...

    def snapshot(self) -> Snapshot:
        """Freeze the state. The lease continues in a new fork of it, which is made on the next use."""
        ...


class Provider(Protocol):
    """Keeps snapshots and leases forks of them. Thread-safe: many leases at once."""

    @property
    def tier(self) -> str:
        """One line for people: how actions are isolated here, and whether states are exact."""
        ...

    @property
    def forked(self) -> Forked:
        """Counts of the forks since the provider was made."""
        ...

    def create(self, workspace: Workspace) -> Snapshot:
        """Make the base state: copy the workspace in and run its set-up commands.

        Raises:
            SandboxUnavailable, ImageMissing, SetupFailed, StoreFull: see each.
        """
        ...

    def at(self, snapshot: Snapshot) -> AbstractContextManager[Sandbox]:
        """Lease a private fork, which is thrown away at the end of the block.

        Raises:
            SnapshotMissing: there is no such snapshot in this store.
            StateDamaged: the fork is not what was frozen; only a provider that was asked to check this raises it.
        """
        ...

    def scratch(
        self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = (), template: Template | None = None
    ) -> AbstractContextManager[Sandbox]:
        """Lease a fork for a measurement: `snapshot`'s workspace, with everything outside it as in `base`.

        The paths `put_back` of the workspace (relative, files or directories) are also as in `base`, and are absent if
        `base` lacks them. With a `template` the fork can `perform`; the template is started over `base` unless it
        already runs there. A provider need not support templates.
        """
        ...

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """List every workspace path that differs, sorted by path; ignored files are included, directories are not."""
        ...

    def diff(self, old: Snapshot, new: Snapshot, *, context: int = 3) -> bytes:
        """Return a byte-exact git patch of the workspace from `old` to `new`, for `git apply -p1`.

        Each change is surrounded by `context` unchanged lines. New files that git would ignore, `.git` and nested
        repositories are left out, as are new files over 64 MiB (with a warning). Empty if nothing differs.

        Raises:
            SandboxError: a changed file that is in `old` is over 64 MiB, or all files that differ are over 256 MiB.
        """
        ...

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Merge:
        """Merge two states' changes to the workspace of `base`, as `git merge` does. Only what `diff` would show for
        each state is merged, and nothing outside the workspace."""
        ...

    def discard(self, *snapshots: Snapshot) -> None:
        """Forget snapshots and free what no other snapshot needs.

        Raises:
            SnapshotMissing: one of them was already forgotten.
        """
        ...

    def retain(self, snapshots: Collection[Snapshot]) -> None:
        """Forget all other snapshots in the store: those that a killed process froze but never recorded."""
        ...

    def require_room(self, *, to_finish: bool = False) -> None:
        """Check that there is room for more states; call it before work that makes some. `to_finish`: this is the last
        work, and may use the space that is held in reserve.

        Raises:
            StoreFull: the disk is nearly full, or the states take more than `Limits.store_bytes`.
        """
        ...

    def close(self) -> None:
        """End every lease and process; snapshots stay on disk for the next provider on the same store. May be called
        while other threads use leases: their calls, and later requests for a lease, raise SandboxLost."""
        ...
