"""The four deadlines of an answer, and reading an answer that may stall at any byte.

Invariant: no caller waits for an answer beyond its deadlines or beyond a halt, whatever the server does. So a separate
thread reads the answer, and is cut off when it is late.
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

READER = "ramify-answer"
"""The name of the threads that read answers."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The deadlines in seconds, each above 0."""

    connect_s: float = 10.0
    first_token_s: float = 300.0
    """From the question to the first piece of the answer: a model may think for minutes before it writes a word."""
    idle_s: float = 60.0
    """Between two pieces."""
    total_s: float = 600.0
    """From the question to the end of the answer."""

    def unstreamed(self) -> Deadlines:
        """The deadlines of an answer that comes in one piece, so that the first piece may take `total_s`."""
        return replace(self, first_token_s=self.total_s)

    @property
    def silence_s(self) -> float:
        """The longest permitted silence of a connection."""
        return min(self.total_s, max(self.first_token_s, self.idle_s))


class Source(Protocol[T_co]):
    """A request whose answer arrives in pieces."""

    def pieces(self) -> Iterator[T_co]:
        """Send the request and yield the answer's pieces. Runs in a thread of its own."""
        ...

    def cut(self) -> None:
        """Make `pieces` end soon. Called from another thread, when no caller waits any more."""
        ...


class _End:
    """Marks the end of a source in the queue."""


def read(
    source: Source[T], deadlines: Deadlines, halt: Halt, model: str, on_piece: Callable[[T], None] = lambda piece: None
) -> list[T]:
    """All pieces of an answer; `on_piece` is called with each as it arrives.

    Raises:
        Transient: a deadline passed.
        agent.errors.Stopped: the halt was reached.
        Exception: whatever the source raises.
    """
    queue: SimpleQueue[T | _End | BaseException] = SimpleQueue()
    threading.Thread(target=_pump, args=(source, queue), name=READER, daemon=True).start()
    pieces: list[T] = []
    clock = _Clock(deadlines)
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
        clock.piece_arrived()
        on_piece(item)


def _pump(source: Source[T], queue: SimpleQueue[T | _End | BaseException]) -> None:
    try:
        for piece in source.pieces():
            queue.put(piece)
        queue.put(_End())
    except BaseException as error:  # raised again in the waiting thread
        queue.put(error)


def _next(queue: SimpleQueue[T], clock: _Clock, halt: Halt, model: str) -> T:
    while (left_s := clock.left_s()) > 0:
        if halt.reached():
            stopped = Stopped(f"{model}: the run ended before the answer came")
            stopped.usage = UNKNOWN
            raise stopped
        try:
            return queue.get(timeout=min(POLL_S, left_s))
        except Empty:
            continue
    raise Transient(f"{model}: {clock.late()}", usage=UNKNOWN)


class _Clock:
    """Tells which deadline is next and how far away it is."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._began = self._last_piece = time.monotonic()
        self._silent = True

    def piece_arrived(self) -> None:
        self._last_piece, self._silent = time.monotonic(), False

    def left_s(self) -> float:
        return min(self._last_piece + self._patience_s, self._began + self._deadlines.total_s) - time.monotonic()

    def late(self) -> str:
        """Which deadline passed, with the setting that changes it."""
        if time.monotonic() >= self._began + self._deadlines.total_s:
            return f"the answer was not complete after {self._deadlines.total_s:g} s (model.total_s)"
        if self._silent:
            return f"no answer began within {self._deadlines.first_token_s:g} s (model.first_token_s)"
        return f"the answer stopped for {self._deadlines.idle_s:g} s (model.idle_s)"

    @property
    def _patience_s(self) -> float:
        return self._deadlines.first_token_s if self._silent else self._deadlines.idle_s
