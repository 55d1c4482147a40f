"""InProgress: what has begun and not ended, by a run's journal. It is in flight, or was lost with its process.

Law: what was lost is begun again as it was, in the order in which it had begun; what ends the process each time is not
tried for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.run.events import Begun
from agent.run.schedule import ScheduleEntry
from agent.run.tree.tree import Work

__all__ = ["SUSPECT", "TRIES", "InProgress"]

TRIES = 3
"""Work that was lost so often is not begun again: it has failed."""
SUSPECT = 2
"""Work that was lost so often is carried out alone, so that nothing else is lost with it once more."""


class InProgress:
    """A count over the events of a run. Only `agent.run.run.Run` changes it."""

    def __init__(self) -> None:
        self._open: dict[tuple[Work, int], Begun] = {}
        self._by_number: dict[int, tuple[Work, int]] = {}
        self._times: Counter[tuple[Work, int]] = Counter()
        self._next: dict[Work, int] = {}
        self._first: dict[Work, int] = {}

    def __iter__(self) -> Iterator[Begun]:
        """What began first comes first, although it was begun again later."""
        return iter(tuple(self._open.values()))

    def next(self, work: Work) -> int:
        """The lowest index of that work above all that have begun."""
        return self._next.get(work, 0)

    def first(self, work: Work) -> int:
        """The lowest index of that work in the present wave."""
        return self._first.get(work, 0)

    def times(self, begun: Begun) -> int:
        """How often it has begun since a session ended by itself."""
        return self._times[begun.work, begun.index]

    def begin(self, begun: Begun) -> None:
        """Something has begun, for the first time or again."""
        key = begun.work, begun.index
        if key in self._open:
            del self._by_number[self._open[key].number]
        self._open[key] = begun
        self._by_number[begun.number] = key
        self._times[key] += 1
        self._next[begun.work] = max(begun.index + 1, self.next(begun.work))

    def end(self, flight: ScheduleEntry | None) -> None:
        """It has ended. Earlier versions took no note of its beginning."""
        if flight is not None and (key := self._by_number.pop(flight.number, None)) is not None:
            del self._open[key], self._times[key]

    def stand_still(self) -> None:
        """A session ended by itself: what it left undone is not to blame."""
        self._times.clear()

    def begin_wave(self) -> None:
        """What earlier waves left undone is not begun again."""
        self._open.clear()
        self._by_number.clear()
        self._times.clear()
        self._first = dict(self._next)
