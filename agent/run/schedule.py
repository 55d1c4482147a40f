"""Schedules: when expansions started and ended relative to each other, so that one worker can repeat what several did.

Invariant: an expansion sees the results that existed when it began, and counts as in flight from then until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """The place of an expansion that has ended among all that its run had started."""

    number: int
    """How many had started before it."""
    begun: int
    """How many had started when it ended, itself included."""
    since: int
    """How many had started when the engine was last idle. Those that had started before and not ended by then were
    lost."""
    cut: int | None = None
    """The number of turns after which it was ended because the search had to stop; None: it ended by itself."""


Schedule = Sequence[tuple[ScheduleEntry, ...]]
"""The expansions between each two times that the engine was idle, in the order in which they ended."""


def schedule(entries: Iterable[ScheduleEntry | None]) -> Schedule:
    """The schedule of a whole run. An entry is None if an earlier version of Ramify wrote the run without it."""
    known = [entry for entry in entries if entry is not None]
    return [tuple(group) for _, group in groupby(known, attrgetter("since"))]
