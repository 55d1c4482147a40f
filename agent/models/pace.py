"""Pace: what one provider asks of the whole process, whichever worker it told so."""

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

__all__ = ["Pace", "Turn", "pace_of"]


@dataclass(slots=True, eq=False)
class Turn:
    """Somebody's turn to ask."""

    prompt: Prompt
    begun: Callable[[], None] = lambda: None
    """To be called as soon as the answer begins."""
    others: list[Turn] = field(default_factory=list)
    """Those who want another draw of the same. They are given an `answer` each, or ask for themselves afterwards."""
    answer: Completion | None = None
    """It came with another's: nothing is to be asked."""
    taken: bool = False
    """Another asks for it now."""
    first: frozenset[bytes] = frozenset()
    """The blocks that it warms; none any more, once its answer has begun."""


class Pace:
    """A wait that the provider asked for, which holds for everybody, how many may ask at the same time, and who goes
    ahead of those that begin alike (`agent.models.warming`).

    Thread-safe.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        """Requests at the same time, at least 1; None is no limit."""
        self.several = True
        """Whether those who waited for the same, to ask the same but for the seed, go together."""
        self._behind: list[Turn] = []
        self._asking = 0
        self._closed_until = -math.inf
        self._cache = PrefixCache()
        self._changed = threading.Condition()

    @property
    def behind(self) -> int:
        """How many wait now until the answer to another begins."""
        return len(self._behind)

    def close(self, until: float) -> None:
        """Nobody asks before that time of the monotonic clock."""
        with self._changed:
            self._closed_until = max(self._closed_until, until)

    @contextmanager
    def turn(
        self, pause: Callable[[float], None], now: Callable[[], float] = time.monotonic, prompt: Prompt = NO_PROMPT
    ) -> Iterator[Turn]:
        """Wait, by `pause` of seconds, until the provider may be asked; the block is the request.

        Raises:
            Exception: what `pause` raises, which ends the waiting.
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
        """None: it is its turn. Else so many seconds have to pass before it is looked again; some may have passed."""
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
            turn.others = [each for each in self._behind if each is not turn and each.prompt.draw == turn.prompt.draw]
        for other in turn.others:
            other.taken = True
        self._behind = [each for each in self._behind if each is not turn and not each.taken]

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
    """The answer has begun before."""


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(provider: str, most: int | None = None) -> Pace:
    """The pace that all models of a provider keep in this process. The last limit that was given holds."""
    with _lock:
        pace = _paces.setdefault(provider, Pace())
        pace.most = most if most is not None else pace.most
        return pace
