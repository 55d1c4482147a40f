"""Limits the size of the shared area of environments and set-ups.

Invariant: an entry is kept while any existing store has states that need it, so every run can still be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from sandboxes.cleanup import Leftover
from sandboxes.forking.guest_client import Guest
from sandboxes.forking.launcher import Launcher

CACHE_BYTES = 20 << 30
"""The size of all entries above which the least recently used are removed."""
_GRACE_S = 3600.0
"""An entry is kept this long after its last use, because its builder may be about to use it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment or a set-up that was built once."""

    name: str
    size_bytes: int
    used: float
    """When it was last used, in seconds since the epoch."""
    users: tuple[str, ...]
    """The stores whose states need the entry; some may no longer exist."""


def tidy(guest: Guest, lives: Callable[[str], bool]) -> None:
    """Remove unused entries if the shared area is larger than `CACHE_BYTES`."""
    cached = entries(guest)
    if sum(entry.size_bytes for entry in cached) > CACHE_BYTES:
        _expire(guest, surplus(cached, lives, CACHE_BYTES, time.time() - _GRACE_S))


def entries(guest: Guest) -> list[Entry]:
    """List all entries of the shared area."""
    header, _ = guest.ask("entries")
    return [
        Entry(name, facts["bytes"], facts["used"], tuple(facts["users"])) for name, facts in header["entries"].items()
    ]


def surplus(cached: list[Entry], lives: Callable[[str], bool], bound: int, used_before: float) -> Iterator[Entry]:
    """Yield the entries to remove until the others fit into `bound` bytes, the least recently used first.

    Only entries that no existing store needs and that were last used before `used_before` are removed.
    """
    total = sum(entry.size_bytes for entry in cached)
    for entry in sorted(cached, key=lambda entry: entry.used):
        if total <= bound:
            return
        if entry.used < used_before and not any(lives(user) for user in entry.users):
            total -= entry.size_bytes
            yield entry


def leftovers(launcher: Launcher, image: str, unused_s: float) -> Iterator[Leftover]:
    """Yield the entries that no existing store needs and that have not been used for `unused_s` seconds.

    The caller must remove each before it asks for the next.
    """
    guest = Guest(launcher.start(image, network=False))
    try:
        for entry in surplus(entries(guest), launcher.lives, 0, time.time() - unused_s):
            name = f"environment or set-up {entry.name} ({image or 'namespace'})"
            yield Leftover(name, entry.size_bytes, partial(_expire, guest, (entry,)))
    finally:
        guest.close()


def _expire(guest: Guest, unused: Iterable[Entry]) -> bool:
    """Remove entries, except those that another process has started to use; False if nothing was removed."""
    header, _ = guest.ask("expire", entries={entry.name: entry.users for entry in unused})
    return bool(header["expired"])
