"""Scheduled replay: one worker starts and ends expansions in the order in which several workers did."""

from __future__ import annotations

from typing import Protocol

from agent.engine.expansion import Expansion
from agent.run.schedule import ScheduleEntry


class ExpansionRunner(Protocol):
    """Starts and carries out expansions (`agent.engine.engine.Engine`)."""

    def next_expansion(self) -> Expansion | None:
        """Return the next expansion and count it as in flight. None: there is none now, or the search has to stop."""
        ...

    def carry_out(self, expansion: Expansion, entry: ScheduleEntry) -> None:
        """Run the expansion, and end it after as many turns as the entry has."""
        ...

    def finish(self, expansion: Expansion) -> None:
        """Stop counting the expansion as in flight, without a result."""
        ...


def follow(schedule: list[tuple[ScheduleEntry, ...]], runner: ExpansionRunner) -> None:
    """Repeat a schedule (`agent.run.schedule.schedule`), from one idle time to the next, until nothing can be started.
    Repeated entries are removed from the list."""
    while schedule and (first := runner.next_expansion()) is not None:
        _repeat(schedule.pop(0), first, runner)


def _repeat(entries: tuple[ScheduleEntry, ...], first: Expansion, runner: ExpansionRunner) -> None:
    """Repeat the expansions between two idle times. An expansion that never ended is started, so that it counts as in
    flight, but it is not carried out. If the search departs from the schedule, missing entries are skipped."""
    started = [first]
    ended = set[int]()
    for entry in entries:
        while entry.since + len(started) < entry.begun and (expansion := runner.next_expansion()) is not None:
            started.append(expansion)
        if (index := entry.number - entry.since) < len(started):
            runner.carry_out(started[index], entry)
            ended.add(index)
    for index, expansion in enumerate(started):
        if index not in ended:
            runner.finish(expansion)
