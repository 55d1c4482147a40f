"""Things that an earlier run left on this machine and that can be removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Leftover"]


@dataclass(frozen=True, slots=True)
class Leftover:
    """One leftover thing. It is removed only by calling `remove`."""

    name: str
    """What it is, with its name or path; shown to users."""
    size_bytes: int
    """About how much disk space removing it frees; 0 if negligible."""
    remove: Callable[[], bool]
    """Removes it; False if it is in use again."""
