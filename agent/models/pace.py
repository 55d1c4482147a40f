"""Pace: a provider's limits, which hold for all threads of this process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from agent.models import Completion
from agent.models.halt import POLL_S
from agent.models.warming import NO_PROMPT, PrefixCache, Prompt


@dataclass(slots=True, eq=False)
class Slot:
    """One thread's permission to send a request, or its wait for it."""

    prompt: Prompt
    begun: Callable[[], None] = lambda: None
    """To be called as soon as the answer begins."""
    others: list[Slot] = field(default_factory=list)
    """Slots that wait for another draw of the same question. This slot's request gives each of them an `answer`; a slot
    that gets none sends its own request afterwards."""
    answer: Completion | None = None
    """The answer that came with another request, so that no request is needed."""
    taken: bool = False
    """Whether another request is in flight for this one."""
    first: frozenset[bytes] = frozenset()
    """The blocks that its request warms; empty once its answer has begun."""


class Pace:
    """The order of the requests to one provider: waits that it asked for, its limit of concurrent requests, and which
    of several requests with a common prefix goes first (`agent.models.warming`). Thread-safe.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        """The most concurrent requests, at least 1; None means no limit."""
        self.several = True
        """Whether waiting requests that differ only in their seeds are sent as one."""
        self.answered = False
        """Whether the provider's server has ever answered, even if with an error."""
        self.behind: list[Slot] = []
        """The threads that wait now for the answer to another thread's request to begin."""
        self._asking = 0
        self._closed_until = -math.inf
        self._cache = PrefixCache()
        self._changed = threading.Condition()

    def close(self, until: float) -> None:
        """Send no request before this time of the monotonic clock."""
        with self._changed:
            self._closed_until = max(self._closed_until, until)

    @contextmanager
    def slot(
        self, pause: Callable[[float], None], now: Callable[[], float] = time.monotonic, prompt: Prompt = NO_PROMPT
    ) -> Iterator[Slot]:
        """Wait, by calling `pause(seconds)`, until the request may be sent. The block has to make the request.

        Raises:
            Exception: whatever `pause` raises, which ends the waiting.
        """
        slot = Slot(prompt)
        slot.begun = partial(self._begun, slot, now)
        self._enter(slot, pause, now)
        try:
            yield slot
        finally:
            self._leave(slot)

    def _enter(self, slot: Slot, pause: Callable[[float], None], now: Callable[[], float]) -> None:
        until = now() + slot.prompt.patience_s
        try:
            while (wait_s := self._wait_s(slot, now, until)) is not None:
                pause(wait_s)
        finally:
            with self._changed:
                self.behind = [other for other in self.behind if other is not slot]

    def _wait_s(self, slot: Slot, now: Callable[[], float], until: float) -> float | None:
        """The seconds to pause before the next check; None if the request may be sent or is answered."""
        with self._changed:
            if slot.answer is not None:
                return None
            left_s = self._closed_until - now()
            waits = slot.taken or (now() < until and self._cache.is_coming(slot.prompt, now()))
            if left_s <= 0 and not waits and (self.most is None or self._asking < self.most):
                self._send(slot, now())
                return None
            if waits and not slot.taken and slot not in self.behind:
                self.behind.append(slot)
            if left_s <= 0:
                self._changed.wait(POLL_S)
            return max(0.0, left_s)

    def _send(self, slot: Slot, now: float) -> None:
        self._asking += 1
        slot.first = self._cache.warm(slot.prompt, now)
        if self.several and slot.prompt.draw and slot in self.behind:
            draw = slot.prompt.draw
            slot.others = [other for other in self.behind if other is not slot and other.prompt.draw == draw]
        for other in slot.others:
            other.taken = True
        self.behind = [other for other in self.behind if other is not slot and not other.taken]

    def _begun(self, slot: Slot, now: Callable[[], float]) -> None:
        if slot.begun is not _done:
            slot.begun = _done
            with self._changed:
                self._cache.begun(slot.prompt, slot.first, now())
                slot.first = frozenset()
                self._changed.notify_all()

    def _leave(self, slot: Slot) -> None:
        with self._changed:
            self._asking -= slot.answer is None
            self._cache.given_up(slot.first)
            for other in slot.others:
                other.taken = False
            self._changed.notify_all()


def _done() -> None:
    """Replaces `Slot.begun` once the answer has begun."""


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(provider: str, most: int | None = None) -> Pace:
    """The pace shared by all models of a provider in this process. The most recent `most` that is not None applies."""
    with _lock:
        pace = _paces.setdefault(provider, Pace())
        pace.most = most if most is not None else pace.most
        return pace
