"""Describes things that an earlier run left on this machine and that can be removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def state_dir() -> Path:
    """Return this user's directory for files that outlive a run."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ramify"


@dataclass(frozen=True, slots=True)
class Leftover:
    """One leftover thing. It is removed only by calling `remove`."""

    name: str
    """A description with a name or path; shown to users."""
    size_bytes: int
    """About how much disk space removing it frees; 0 if negligible."""
    remove: Callable[[], bool]
    """Removes the leftover; returns False if it is in use again."""
    store: Path | None = None
    """The store that it belongs to, which may no longer exist; None: it belongs to no single run."""
