"""Pace: what one provider asks of the whole process, whichever worker it told so."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.models.halt import POLL_S
from agent.models.warming import NO_PROMPT, PrefixCache, Prompt

__all__ = ["Pace", "pace_of"]


class Pace:
    """A wait that the provider asked for, which holds for everybody, how many may ask at the same time, and who goes
    ahead of those that begin alike (`agent.models.warming`).

    Thread-safe.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        """Requests at the same time, at least 1; None is no limit."""
        self.behind = 0
        """How many wait now for the answer to another to begin."""
        self._asking = 0
        self._closed_until = -math.inf
        self._cache = PrefixCache()
        self._changed = threading.Condition()

    def close(self, until: float) -> None:
        """Nobody asks before that time of the monotonic clock."""
        with self._changed:
            self._closed_until = max(self._closed_until, until)

    @contextmanager
    def turn(
        self, pause: Callable[[float], None], now: Callable[[], float] = time.monotonic, prompt: Prompt = NO_PROMPT
    ) -> Iterator[Callable[[], None]]:
        """Wait, by `pause` of seconds, until the provider may be asked; the block is the request. What it is given is
        to be called as soon as the answer begins.

        Raises:
            Exception: what `pause` raises, which ends the waiting.
        """
        first, answered = self._enter(pause, now, prompt), False

        def begun() -> None:
            nonlocal answered
            if not answered:
                answered = True
                with self._changed:
                    self._cache.begun(prompt, first, now())
                    self._changed.notify_all()

        try:
            yield begun
        finally:
            with self._changed:
                self._asking -= 1
                self._cache.given_up(first)
                self._changed.notify_all()

    def _enter(self, pause: Callable[[float], None], now: Callable[[], float], prompt: Prompt) -> frozenset[bytes]:
        """The blocks of the prompt that nobody else warms."""
        until = now() + prompt.patience_s
        while True:
            with self._changed:
                left_s = self._closed_until - now()
                behind = now() < until and self._cache.is_coming(prompt, now())
                if left_s <= 0 and not behind and (self.most is None or self._asking < self.most):
                    self._asking += 1
                    return self._cache.warm(prompt, now())
                if left_s <= 0:
                    self.behind += behind
                    self._changed.wait(POLL_S)
                    self.behind -= behind
            pause(max(0.0, left_s))


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(provider: str, most: int | None = None) -> Pace:
    """The pace that all models of a provider keep in this process. The last limit that was given holds."""
    with _lock:
        pace = _paces.setdefault(provider, Pace())
        pace.most = most if most is not None else pace.most
        return pace
