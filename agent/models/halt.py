"""Halt: the end of all waiting for models, because the run was cancelled, failed for good, or ran out of time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

POLL_S = 0.2
"""How soon a waiting thread notices a halt."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Checked by everything that waits. With the defaults, only `fail` ends the waiting."""

    cancel: threading.Event = field(default_factory=threading.Event)
    left_s: Callable[[], float] = lambda: math.inf
    """Seconds left of the run's time; at most 0 when it is over."""
    _failed: threading.Event = field(default_factory=threading.Event)

    def fail(self) -> None:
        """End the waiting because the run has failed for good."""
        self._failed.set()

    def reached(self) -> bool:
        """Whether waiting has to end."""
        return self.cancel.is_set() or self._failed.is_set() or self.left_s() <= 0

    def sleep(self, seconds: float) -> bool:
        """Sleep, at most until the halt is reached; return whether it is reached."""
        until = time.monotonic() + seconds
        while not self.reached() and (left_s := until - time.monotonic()) > 0:
            self.cancel.wait(min(left_s, POLL_S))
        return self.reached()
