"""Halt: when nobody waits for a model any longer: the run was cancelled, has failed for good, or its time is over."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Halt"]


POLL_S = 0.2
"""How soon whoever waits notices."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Asked by all that waits. By default nothing ends the waiting but `fail`."""

    cancel: threading.Event = field(default_factory=threading.Event)
    left_s: Callable[[], float] = lambda: math.inf
    """Seconds that are left of the run's time, at most 0 when it is over."""
    _failed: threading.Event = field(default_factory=threading.Event)

    def fail(self) -> None:
        """The run has failed for good: an answer would come too late."""
        self._failed.set()

    def reached(self) -> bool:
        """Whether to wait no longer."""
        return self.cancel.is_set() or self._failed.is_set() or self.left_s() <= 0

    def sleep(self, seconds: float) -> bool:
        """Let so many seconds pass, or fewer when the halt is reached meanwhile; whether it is reached."""
        until = time.monotonic() + seconds
        while not self.reached() and (left_s := until - time.monotonic()) > 0:
            self.cancel.wait(min(left_s, POLL_S))
        return self.reached()
