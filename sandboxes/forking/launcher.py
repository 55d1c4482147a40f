"""Defines how a guest is started: the interface between `ForkingProvider` and the machine or engine with its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandboxes import Workspace


class Channel(Protocol):
    """The stdin and stdout of one running guest. Used by one thread at a time."""

    def send(self, data: bytes) -> None:
        """Send all of `data`.

        Raises:
            OSError: the guest is gone.
        """
        ...

    def receive(self, size: int) -> bytes:
        """Receive exactly `size` bytes.

        Raises:
            EOFError, OSError: the guest is gone.
        """
        ...

    def close(self) -> str:
        """End the guest with everything in it, and return the end of its stderr. May be called again."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """What the states of one workspace are based on. Paths are as the guest sees them."""

    image: str
    """The image of the guests that can hold these states, "" if they need none: the argument of `Launcher.start`. It is
    part of snapshot ids, so that a later process can start such a guest. Only letters, digits and dots."""
    mounts: tuple[tuple[str, str], ...]
    """(target, lower directory) of each mount except the workspace's; "/" is first."""
    workdir: str
    """Absolute path of the workspace inside. If `Workspace.path` is None, it is a directory of the "/" mount."""
    env: Mapping[str, str]
    """Environment variables of every action (PATH, HOME, ...); `Workspace.env` overrides them."""
    key: str
    """Identifies the content of the lower directories; part of the environment cache's keys and of digests."""
    user: str = ""
    """The user who runs commands, as an image states it (a name or number, and a group); "" is root."""
    leave_out: tuple[Path, ...] = ()
    """Directories on this machine that are never copied with a workspace: the store, if it is inside one."""


class Launcher(Protocol):
    """Starts guests. Thread-safe."""

    @property
    def tier(self) -> str:
        """As `Provider.tier`."""
        ...

    def layout(self, workspace: Workspace) -> Layout:
        """Return the layout of a workspace's states.

        Raises:
            SandboxUnavailable, ImageMissing, StoreFull: see each.
        """
        ...

    def start(self, image: str, *, network: bool) -> Channel:
        """Start a guest. The caller reads its first frame.

        Raises:
            SandboxUnavailable: the guest cannot be started; the message says what to change.
        """
        ...

    @property
    def disk(self) -> Path | None:
        """A local directory on the disk with the states; None if they are on another machine."""
        ...

    def lives(self, store: str) -> bool:
        """Whether a store still exists. `store` is its name in a guest's arguments, which shared entries record."""
        ...

    def close(self) -> None:
        """Free the resources that all guests share. Close every channel first."""
        ...
