"""Something that an earlier run left on this machine, and that may go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Leftover"]


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing. Nothing happens to it before `remove` is called."""

    name: str
    """For people: what it is, and its name or path."""
    size_bytes: int
    """What goes with it from a disk, about; 0 where it takes nothing to speak of."""
    remove: Callable[[], bool]
    """Whether it is gone now; it may be in use again."""
