"""The shared area of environments and set-ups: how much of it is kept.

Nothing goes that a run could still be resumed from: an entry stays as long as a store whose states stand on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sandboxes.cleanup import Leftover
from sandboxes.forking.guest_client import Guest
from sandboxes.forking.launcher import Launcher

__all__ = ["CACHE_BYTES", "Entry", "expire", "leftovers", "surplus", "tidy"]

CACHE_BYTES = 20 << 30
"""What all entries together may take before the least recently used go."""
_GRACE_S = 3600.0
"""An entry is safe so long after its last use: who has just built it is about to stand on it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An environment or a set-up that was built once."""

    name: str
    size_bytes: int
    used: float
    """When it was last used, in seconds of the clock."""
    users: tuple[str, ...]
    """The stores whose states stand on it; some may be gone."""


def tidy(guest: Guest, lives: Callable[[str], bool]) -> None:
    """Keep the shared area within its bound."""
    found = entries(guest)
    if sum(entry.size_bytes for entry in found) > CACHE_BYTES:
        expire(guest, surplus(found, lives, CACHE_BYTES, time.time() - _GRACE_S))


def entries(guest: Guest) -> list[Entry]:
    """All of them."""
    header, _ = guest.ask("entries")
    return [
        Entry(name, facts["bytes"], facts["used"], tuple(facts["users"])) for name, facts in header["entries"].items()
    ]


def surplus(found: list[Entry], lives: Callable[[str], bool], bound: int, used_before: float) -> Iterator[Entry]:
    """Entries that no living store stands on and that were last used before a moment, the longest unused first, until
    the others fit into `bound` bytes."""
    total = sum(entry.size_bytes for entry in found)
    for entry in sorted(found, key=lambda entry: entry.used):
        if total <= bound:
            return
        if entry.used < used_before and not any(lives(user) for user in entry.users):
            total -= entry.size_bytes
            yield entry


def leftovers(launcher: Launcher, place: str, unused_s: float) -> Iterator[Leftover]:
    """Entries that no living store stands on and nobody used for so long. Each is to be removed before the next is
    asked for."""
    guest = Guest(launcher.start(place, network=False))
    try:
        for entry in surplus(entries(guest), launcher.lives, 0, time.time() - unused_s):
            name = f"environment or set-up {entry.name} ({place or 'namespace'})"
            yield Leftover(name, entry.size_bytes, partial(_expired, guest, entry))
    finally:
        guest.close()


def _expired(guest: Guest, entry: Entry) -> bool:
    return bool(expire(guest, iter((entry,))))


def expire(guest: Guest, going: Iterator[Entry]) -> tuple[str, ...]:
    """Remove entries, but for those that another process has begun to use meanwhile; what went."""
    header, _ = guest.ask("expire", entries={entry.name: entry.users for entry in going})
    return tuple(header["expired"])
