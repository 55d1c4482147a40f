"""Pace: what one provider asks of the whole process, whichever worker it told so."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.models.halt import POLL_S

__all__ = ["Pace", "pace_of"]


class Pace:
    """A wait that the provider asked for, which holds for everybody, and how many may ask at the same time.

    Thread-safe.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        """Requests at the same time, at least 1; None is no limit."""
        self._asking = 0
        self._closed_until = -math.inf
        self._changed = threading.Condition()

    def close(self, until: float) -> None:
        """Nobody asks before that time of the monotonic clock."""
        with self._changed:
            self._closed_until = max(self._closed_until, until)

    @contextmanager
    def turn(self, pause: Callable[[float], None], now: Callable[[], float] = time.monotonic) -> Iterator[None]:
        """Wait, by `pause` of seconds, until the provider may be asked; the block is the request.

        Raises:
            Exception: what `pause` raises, which ends the waiting.
        """
        self._enter(pause, now)
        try:
            yield
        finally:
            with self._changed:
                self._asking -= 1
                self._changed.notify()

    def _enter(self, pause: Callable[[float], None], now: Callable[[], float]) -> None:
        while True:
            with self._changed:
                left_s = self._closed_until - now()
                if left_s <= 0 and (self.most is None or self._asking < self.most):
                    self._asking += 1
                    return
                if left_s <= 0:
                    self._changed.wait(POLL_S)
            pause(max(0.0, left_s))


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(provider: str, most: int | None = None) -> Pace:
    """The pace that all models of a provider keep in this process. The last limit that was given holds."""
    with _lock:
        pace = _paces.setdefault(provider, Pace())
        pace.most = most if most is not None else pace.most
        return pace
