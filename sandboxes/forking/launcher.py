"""How a guest is started: the seam between states that fork (`forks.py`) and the place where they live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandboxes import Workspace

__all__ = ["Channel", "Launcher", "Layout"]


class Channel(Protocol):
    """The stdin and stdout of one running guest. Used by one thread at a time."""

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            OSError: the guest is gone.
        """
        ...

    def receive(self, size: int) -> bytes:
        """Exactly `size` bytes.

        Raises:
            EOFError, OSError: the guest is gone.
        """
        ...

    def close(self) -> str:
        """End the guest and everything in it; what it said on stderr, limited. May be called again."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """What the states of one workspace are made over. Directories are named as the guest sees them."""

    place: str
    """Which guests can hold these states, "" where all can: what `Launcher.start` takes. It becomes part of snapshot
    ids, so that a later process knows how to start such a guest. Letters, digits and dots only."""
    mounts: tuple[tuple[str, str], ...]
    """(target, lower directory) of each mount but the workspace's; "/" first."""
    workdir: str
    """Absolute path of the workspace inside. Where `Workspace.path` is None it is a directory of the "/" mount."""
    env: Mapping[str, str]
    """Environment of every action (PATH, HOME, ...), under `Workspace.env`."""
    key: str
    """Names the content of the lower directories: part of the environment cache's keys and of digests."""
    user: str = ""
    """Who runs commands, as an image says it (a name or number, and a group); "" is root."""
    leave_out: tuple[Path, ...] = ()
    """Directories on this machine that are never copied as part of a workspace: the store, if it lies in one."""


class Launcher(Protocol):
    """Starts guests. Thread-safe."""

    @property
    def tier(self) -> str:
        """As `Provider.tier`."""
        ...

    def layout(self, workspace: Workspace) -> Layout:
        """What a workspace's states are made over.

        Raises:
            SandboxUnavailable, ImageMissing, StoreFull: see each.
        """
        ...

    def start(self, place: str, *, network: bool) -> Channel:
        """A new guest; the caller reads its first frame.

        Raises:
            SandboxUnavailable: it cannot be started; the message says what to change.
        """
        ...

    @property
    def disk(self) -> Path | None:
        """A directory of this machine on the disk that the states lie on; None where that is another machine's."""
        ...

    def lives(self, store: str) -> bool:
        """Whether a store is still there, by the name that its guests were started with: what shared entries know
        their users by."""
        ...

    def close(self) -> None:
        """Free what all guests shared. Every channel is closed before."""
        ...
