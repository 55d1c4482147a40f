"""Flights: when choices began and ended beside one another, so that one worker can do again what several did.

Law: a choice knows what had ended when it began, and is in flight from then until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

__all__ = ["Schedule", "ScheduleEntry", "schedule"]


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """The place of a choice that has ended among all that its run had begun."""

    number: int
    """How many had begun before it."""
    begun: int
    """How many had begun when it ended, itself included."""
    since: int
    """The number of the first that began after the last time that the search had stood still, with nothing in flight:
    what began earlier and has not ended by then never does."""
    cut: int | None = None
    """The turns after which it was ended because the search was to stop; None: it came to its own end."""


Schedule = Sequence[tuple[ScheduleEntry, ...]]
"""What several workers did between two times that their search stood still, each with its choices as they ended."""


def schedule(flights: Iterable[ScheduleEntry | None]) -> Schedule:
    """Those of a whole run. None, where a version of ramify that took no note of it wrote the run."""
    known = [flight for flight in flights if flight is not None]
    return [tuple(group) for _, group in groupby(known, attrgetter("since"))]
