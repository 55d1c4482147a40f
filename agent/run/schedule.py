"""Schedules: when expansions began and ended beside one another, so that one worker can repeat what several did.

Invariant: an expansion knows what had ended when it began, and is in flight from then until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """The place of an expansion that has ended, among all that its run had begun."""

    number: int
    """How many had begun before it."""
    begun: int
    """How many had begun when it ended, itself included."""
    since: int
    """How many had begun when the engine was last idle. What had begun before and not ended by then was lost."""
    cut: int | None = None
    """The turns after which it was ended because the search was to stop; None: it came to its own end."""


Schedule = Sequence[tuple[ScheduleEntry, ...]]
"""The expansions between each two times that the engine was idle, in the order in which they ended."""


def schedule(entries: Iterable[ScheduleEntry | None]) -> Schedule:
    """The schedule of a whole run. An entry is None where an earlier version of ramify wrote the run without it."""
    known = [entry for entry in entries if entry is not None]
    return [tuple(group) for _, group in groupby(known, attrgetter("since"))]
