"""Expansions in progress: started and not ended, by a run's journal. They are in flight, or were lost with their
process.

Invariant: lost expansions are restarted unchanged, in the order in which they had started; one that kills its process
each time is given up in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.run.events import Begun
from agent.run.schedule import ScheduleEntry
from agent.run.tree.node import Work

TRIES = 3
"""An expansion that was lost this often counts as failed and is not restarted."""
SUSPECT = 2
"""An expansion that was lost this often is carried out alone, so that it cannot take others down with it."""


class InProgress:
    """Counts over the events of a run. Only `agent.run.run.Run` changes them."""

    def __init__(self) -> None:
        self._open: dict[tuple[Work, int], Begun] = {}
        self._by_number: dict[int, tuple[Work, int]] = {}
        self._times: Counter[tuple[Work, int]] = Counter()
        self._next: dict[Work, int] = {}
        self._first: dict[Work, int] = {}

    def __iter__(self) -> Iterator[Begun]:
        """Yield the begin events of all expansions in progress, in the order in which they began for the first time."""
        return iter(tuple(self._open.values()))

    def next_index(self, work: Work) -> int:
        """The lowest index that no expansion of this work has had."""
        return self._next.get(work, 0)

    def first_index(self, work: Work) -> int:
        """The lowest index of this work in the current round."""
        return self._first.get(work, 0)

    def times(self, begun: Begun) -> int:
        """How often the expansion has started since a session last ended normally."""
        return self._times[begun.work, begun.index]

    def began_s(self, flight: ScheduleEntry | None) -> float | None:
        """Seconds of all sessions when the expansion in flight began; None: the journal does not say."""
        key = self._by_number.get(flight.number) if flight else None
        return None if key is None else self._open[key].elapsed_s

    def begin(self, begun: Begun) -> None:
        """Count an expansion that began, for the first time or again."""
        key = begun.work, begun.index
        if key in self._open:
            del self._by_number[self._open[key].number]
        self._open[key] = begun
        self._by_number[begun.number] = key
        self._times[key] += 1
        self._next[begun.work] = max(begun.index + 1, self.next_index(begun.work))

    def end(self, flight: ScheduleEntry | None) -> None:
        """Count an expansion as ended. Journals of earlier versions do not say that it began."""
        if flight is not None and (key := self._by_number.pop(flight.number, None)) is not None:
            del self._open[key], self._times[key]

    def end_session(self) -> None:
        """Note that a session ended normally: the expansions that it left in progress did not kill it."""
        self._times.clear()

    def begin_round(self) -> None:
        """Forget the expansions that earlier rounds left in progress; they are not restarted."""
        self._open.clear()
        self._by_number.clear()
        self._times.clear()
        self._first = dict(self._next)
