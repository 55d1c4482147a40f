"""The four deadlines of an answer, and reading one that may stop coming at any byte.

Law: whoever waits for an answer waits no longer than its deadlines say, and not past a halt, whatever the server does.
So the answer is read by a thread of its own, which is cut off when it is late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Protocol, TypeVar

from agent.errors import Stopped
from agent.models.halt import POLL_S, Halt
from agent.models.retry import UNKNOWN, Transient

__all__ = ["READER", "Deadlines", "Source", "read"]

READER = "ramify-answer"
"""The name of the threads that read answers."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds, each above 0."""

    connect_s: float = 10.0
    first_token_s: float = 300.0
    """From the question to the first piece of the answer: a model may think for minutes before it says a word."""
    idle_s: float = 60.0
    """Between two pieces."""
    total_s: float = 600.0
    """From the question to the end of the answer."""

    def unstreamed(self) -> Deadlines:
        """An answer that comes in one piece has nothing to show before its end."""
        return replace(self, first_token_s=self.total_s)

    @property
    def silence_s(self) -> float:
        """The longest that a connection may be silent."""
        return min(self.total_s, max(self.first_token_s, self.idle_s))


class Source(Protocol[T_co]):
    """An answer on its way."""

    def pieces(self) -> Iterator[T_co]:
        """Ask, and give what comes. Runs in a thread of its own."""
        ...

    def cut(self) -> None:
        """Make `pieces` end soon. Called from another thread, when nobody waits for them any more."""
        ...


class _End:
    """The last thing that a source gives."""


def read(
    source: Source[T],
    deadlines: Deadlines,
    halt: Halt,
    model: str,
    heard: Callable[[T], None] = lambda piece: None,
    now: Callable[[], float] = time.monotonic,
) -> list[T]:
    """All pieces of an answer; `heard` is told of each as it comes.

    Raises:
        Transient: a deadline passed.
        agent.errors.Stopped: the halt was reached.
        Exception: what the source raises.
    """
    queue: SimpleQueue[T | _End | BaseException] = SimpleQueue()
    threading.Thread(target=_pump, args=(source, queue), name=READER, daemon=True).start()
    pieces: list[T] = []
    clock = _Clock(deadlines, now)
    while True:
        try:
            item = _next(queue, clock, halt, model)
        except BaseException:
            source.cut()
            raise
        if isinstance(item, _End):
            return pieces
        if isinstance(item, BaseException):
            raise item
        pieces.append(item)
        clock.heard()
        heard(item)


def _pump(source: Source[T], queue: SimpleQueue[T | _End | BaseException]) -> None:
    try:
        for piece in source.pieces():
            queue.put(piece)
        queue.put(_End())
    except BaseException as error:  # it is raised again where it is waited for
        queue.put(error)


def _next(queue: SimpleQueue[T], clock: _Clock, halt: Halt, model: str) -> T:
    while (left_s := clock.left_s()) > 0:
        if halt.reached():
            raise _stopped(model)
        try:
            return queue.get(timeout=min(POLL_S, left_s))
        except Empty:
            continue
    raise Transient(f"{model}: {clock.late()}", usage=UNKNOWN)


def _stopped(model: str) -> Stopped:
    stopped = Stopped(f"{model}: the run ended before the answer came")
    stopped.usage = UNKNOWN
    return stopped


class _Clock:
    """Which deadline is next, and how far it is away."""

    def __init__(self, deadlines: Deadlines, now: Callable[[], float]) -> None:
        self._deadlines = deadlines
        self._now = now
        self._began = self._heard = now()
        self._silent = True

    def heard(self) -> None:
        self._heard, self._silent = self._now(), False

    def left_s(self) -> float:
        return min(self._heard + self._patience_s, self._began + self._deadlines.total_s) - self._now()

    def late(self) -> str:
        """What was late, with the setting to change."""
        if self._now() >= self._began + self._deadlines.total_s:
            return f"the answer was not complete after {self._deadlines.total_s:g} s (model.total_s)"
        if self._silent:
            return f"no answer began within {self._deadlines.first_token_s:g} s (model.first_token_s)"
        return f"the answer stopped for {self._deadlines.idle_s:g} s (model.idle_s)"

    @property
    def _patience_s(self) -> float:
        return self._deadlines.first_token_s if self._silent else self._deadlines.idle_s
