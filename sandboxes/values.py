"""The values that sandbox providers accept and return: limits, workspaces, snapshots, results of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandboxes.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one action may use. Every limit is enforced inside the sandbox; none depends on the caller's clock."""

    memory_bytes: int = 2 << 30
    pids: int = 256
    output_bytes: int = 1 << 20
    """The limit for stdout and for stderr, separately: the head is kept, the rest is drained and counted."""
    disk_bytes: int = 2 << 30
    """How much the actions of one fork may add to the store before it is frozen; each file counts at least 4 KiB."""
    store_bytes: int = 50 << 30
    """The total size of the states in one store above which `Provider.require_room` raises an error."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the first snapshot is made from."""

    path: Path | None = None
    """A checkout on this machine. It is copied and never written to. None: the image already holds the repository."""
    mount: str | None = None
    """Absolute path of the workspace inside. None: the same path as outside (namespace), `/workspace` (docker)."""
    nested: bool = False
    """Without a path: if the image has no repository at `mount` but has one in a folder there, that folder is the
    workspace."""
    image: str | None = None
    """Docker image; ignored by providers that use this machine's own files."""
    environment: tuple[str, ...] = ()
    """Shell commands that build what the tests need without looking at the workspace (`pip install` of pinned
    packages). They run with network access, before the workspace is copied in; the result is cached across runs by
    content."""
    setup: tuple[str, ...] = ()
    """Shell commands that run in order in the workspace, with network access (`pip install -e .`), once for the same
    content, machine and commands. The result is cached across runs."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of every action, over the provider's own small default (PATH, HOME, LANG)."""
    byte_code: bool = False
    """Put byte code, checked by content, beside the Python files of the base state. Actions write no byte code, and
    would compile every import again. A provider may ignore this."""

    def __post_init__(self) -> None:
        """Check the types of sequences.

        Raises:
            SandboxError: `environment` or `setup` is a string.
        """
        if isinstance(self.path, str):  # as people write it
            object.__setattr__(self, "path", Path(self.path))
        for name in ("environment", "setup"):
            if isinstance(value := getattr(self, name), str):
                raise SandboxError(f"Workspace({name}={value!r}) is one string; give a tuple: ({value!r},)")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A frozen state. A plain value that can be kept, compared, written to a journal and used after a restart."""

    id: str
    digest: str
    """Hash of everything that differs from the base: equal digests mean equal states (times are not counted)."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. Non-zero exit, time-out and a killed process are data, never exceptions."""

    exit_code: int
    """The command's own exit code; 128 + N if signal N ended it; 124 after a time-out."""
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    """The total bytes written; more than `len(stdout)` if the output limit cut it."""
    stderr_bytes: int
    duration_s: float
    timed_out: bool = False
    """The deadline passed: everything the command started was killed and the fork was thrown away."""
    limit: Literal["", "memory", "pids", "disk"] = ""
    """The limit that ended the command, if known."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path of the workspace that differs between two snapshots."""

    path: str
    """Relative to the workspace, `/`-separated; bytes that are not valid UTF-8 are surrogate-escaped."""
    kind: Literal["added", "modified", "removed"]

    @property
    def in_git(self) -> bool:
        """Whether the path is in the repository's `.git`, which even read-only commands may change (`git status`)."""
        return self.path.startswith(".git/")


@dataclass(frozen=True, slots=True)
class Merge:
    """The result of a merge."""

    patch: bytes
    """From our side to the merged one, for `git apply -p1`; empty if the other side adds nothing, or on conflict."""
    conflicts: tuple[str, ...]
    """Paths that both sides changed in conflicting ways."""


@dataclass(frozen=True, slots=True)
class Template:
    """A process that has already done what many commands start with (mainly imports); each command gets a copy of it.

    The template runs in its own fork of the base state. A copy runs in the command's fork, as any command does.
    """

    argv: tuple[str, ...]
    """The command line of an interpreter that reads its program from stdin: `("python", "-")`."""
    program: str
    """A Python 3.8 program that receives orders through `ramify_door.door` (see `sandboxes/guest/door.py`). It may call
    `register(package, [(module, source), ...])`, which lists each module after those that it imports."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that override those of every action."""


@dataclass(frozen=True, slots=True)
class Forked:
    """Counts of a provider's forks."""

    times: int = 0
    """The number of forks that were handed out."""
    mismatches: int = 0
    """The number of forks that were refused because they differed from what had been frozen."""
    checked: bool = False
    """Whether each fork was compared, by a digest of every path that its layers touch."""
