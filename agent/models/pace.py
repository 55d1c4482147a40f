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
class Turn:
    """One thread's turn to send a request."""

    prompt: Prompt
    begun: Callable[[], None] = lambda: None
    """To be called as soon as the answer begins."""
    others: list[Turn] = field(default_factory=list)
    """Turns that wait for another draw of the same question. This turn's request gives each of them an `answer`;
    those that get none send their own request afterwards."""
    answer: Completion | None = None
    """The answer that came with another turn's request, so that no request is needed."""
    taken: bool = False
    """Whether another turn's request is in flight for this one."""
    first: frozenset[bytes] = frozenset()
    """The blocks that its request warms; empty once its answer has begun."""


class Pace:
    """The order of the requests to one provider: waits that it asked for, its limit of concurrent requests, and which
    of several requests with a common prefix goes first (`agent.models.warming`). Thread-safe.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        """Most concurrent requests, at least 1; None is no limit."""
        self.several = True
        """Whether waiting turns that differ only in their seeds share a request."""
        self.answered = False
        """Whether the provider's server has ever answered, be it with an error."""
        self._behind: list[Turn] = []
        self._asking = 0
        self._closed_until = -math.inf
        self._cache = PrefixCache()
        self._changed = threading.Condition()

    @property
    def behind(self) -> int:
        """How many turns wait now for the answer to another turn to begin."""
        return len(self._behind)

    def close(self, until: float) -> None:
        """Send no request before this time of the monotonic clock."""
        with self._changed:
            self._closed_until = max(self._closed_until, until)

    @contextmanager
    def turn(
        self, pause: Callable[[float], None], now: Callable[[], float] = time.monotonic, prompt: Prompt = NO_PROMPT
    ) -> Iterator[Turn]:
        """Wait by calls of `pause(seconds)` until the request may be sent; the block is the request.

        Raises:
            Exception: whatever `pause` raises, which ends the waiting.
        """
        turn = Turn(prompt)
        turn.begun = partial(self._begun, turn, now)
        self._enter(turn, pause, now)
        try:
            yield turn
        finally:
            self._leave(turn)

    def _enter(self, turn: Turn, pause: Callable[[float], None], now: Callable[[], float]) -> None:
        until = now() + turn.prompt.patience_s
        try:
            while (wait_s := self._wait_s(turn, now, until)) is not None:
                pause(wait_s)
        finally:
            with self._changed:
                self._behind = [other for other in self._behind if other is not turn]

    def _wait_s(self, turn: Turn, now: Callable[[], float], until: float) -> float | None:
        """None if the turn has come. Else the seconds to pause before the next check, after a short wait of its own."""
        with self._changed:
            if turn.answer is not None:
                return None
            left_s = self._closed_until - now()
            waits = turn.taken or (now() < until and self._cache.is_coming(turn.prompt, now()))
            if left_s <= 0 and not waits and (self.most is None or self._asking < self.most):
                self._send(turn, now())
                return None
            if waits and not turn.taken and turn not in self._behind:
                self._behind.append(turn)
            if left_s <= 0:
                self._changed.wait(POLL_S)
            return max(0.0, left_s)

    def _send(self, turn: Turn, now: float) -> None:
        self._asking += 1
        turn.first = self._cache.warm(turn.prompt, now)
        if self.several and turn.prompt.draw and turn in self._behind:
            draw = turn.prompt.draw
            turn.others = [other for other in self._behind if other is not turn and other.prompt.draw == draw]
        for other in turn.others:
            other.taken = True
        self._behind = [other for other in self._behind if other is not turn and not other.taken]

    def _begun(self, turn: Turn, now: Callable[[], float]) -> None:
        if turn.begun is not _done:
            turn.begun = _done
            with self._changed:
                self._cache.begun(turn.prompt, turn.first, now())
                turn.first = frozenset()
                self._changed.notify_all()

    def _leave(self, turn: Turn) -> None:
        with self._changed:
            self._asking -= turn.answer is None
            self._cache.given_up(turn.first)
            for other in turn.others:
                other.taken = False
            self._changed.notify_all()


def _done() -> None:
    """Replaces `Turn.begun` once the answer has begun."""


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(provider: str, most: int | None = None) -> Pace:
    """The pace shared by all models of a provider in this process. The most recent `most` that is not None holds."""
    with _lock:
        pace = _paces.setdefault(provider, Pace())
        pace.most = most if most is not None else pace.most
        return pace
