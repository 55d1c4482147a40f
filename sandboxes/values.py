"""The values that providers of sandboxes take and give: limits, workspaces, snapshots, how a command ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandboxes.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one action may use. Every limit is enforced inside the sandbox, none depends on the caller's clock."""

    memory_bytes: int = 2 << 30
    pids: int = 256
    output_bytes: int = 1 << 20
    """Of stdout and of stderr, each: the head is kept, the rest is drained and counted."""
    disk_bytes: int = 2 << 30
    """What the actions of one fork may add to the store before it is frozen; the least that a file counts is 4 KiB."""
    store_bytes: int = 50 << 30
    """What the states of one store may take together before `Provider.require_room` says so."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the first snapshot is made of."""

    path: Path | None = None
    """A checkout on this machine. It is copied, never written. None: the image already holds the repository."""
    mount: str | None = None
    """Absolute path of the workspace inside. None: the same path as outside (namespace), `/workspace` (docker)."""
    nested: bool = False
    """Without a path: where the image has no repository at `mount` and one in a folder of it, that folder is the
    workspace."""
    image: str | None = None
    """Docker image; ignored by providers that use this machine's own files."""
    environment: tuple[str, ...] = ()
    """Shell commands that build what the tests need without looking at the workspace (`pip install` of pinned
    packages). Run with the network on, before the workspace is there; the result is cached across runs by content."""
    setup: tuple[str, ...] = ()
    """Shell commands run in order, with the network on, in the workspace (`pip install -e .`): once for the same
    content, machine and commands. The result is cached across runs."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of every action, over the provider's own small default (PATH, HOME, LANG)."""
    byte_code: bool = False
    """Put byte code beside the Python files of the base state, checked by content: actions write none, and would
    compile all that they import anew. A provider may leave it undone."""

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

    @property
    def in_git(self) -> bool:
        """Whether it is in the repository's `.git`, which a look at the history may change (`git status`)."""
        return self.path.startswith(".git/")


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge came to."""

    patch: bytes
    """From our side to the merged one, for `git apply -p1`; empty where the other side adds nothing, or on conflict."""
    conflicts: tuple[str, ...]
    """Paths that both sides changed in ways that do not go together."""


@dataclass(frozen=True, slots=True)
class Template:
    """A process that has done what many commands begin with (imports, above all), and of which each gets a copy.

    It runs in a fork of its own of the base state; a copy runs in the fork of the command, as any command does.
    """

    argv: tuple[str, ...]
    """The interpreter, such that it reads its program from stdin: `("python", "-")`."""
    program: str
    """A Python program (3.8) that takes orders by `ramify_door.door` (see `sandboxes/guest/door.py`). It may call
    `register(package, [(module, source), ...])`, each module after those that it imports."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Over the one of every action."""


@dataclass(frozen=True, slots=True)
class Forked:
    """How often a provider has forked a state."""

    times: int = 0
    """Forks that were handed out."""
    mismatches: int = 0
    """Forks that were refused because they were not what had been frozen."""
    checked: bool = False
    """Whether each was compared, by a digest of all that its layers touch."""
