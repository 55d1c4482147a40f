"""Halt: when nobody waits for a model any longer, because the run was cancelled or its time is over."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Halt"]


@dataclass(frozen=True, slots=True)
class Halt:
    """Asked by all that waits. By default nothing ever ends the waiting."""

    cancel: threading.Event = field(default_factory=threading.Event)
    left_s: Callable[[], float] = lambda: math.inf
    """Seconds that are left of the run's time, at most 0 when it is over."""

    def reached(self) -> bool:
        """Whether to wait no longer."""
        return self.cancel.is_set() or self.left_s() <= 0

    def sleep(self, seconds: float) -> bool:
        """Let so many seconds pass, or fewer when the halt is reached meanwhile; whether it is reached."""
        self.cancel.wait(min(seconds, max(0.0, self.left_s())))
        return self.reached()
