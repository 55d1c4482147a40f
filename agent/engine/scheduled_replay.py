"""Following: one worker begins and ends choices in the order in which several did."""

from __future__ import annotations

from typing import Protocol

from agent.engine.in_flight import Ticket
from agent.run.schedule import ScheduleEntry

__all__ = ["Crew", "follow"]


class Crew(Protocol):
    """Who searches (`agent.engine.engine.Engine`)."""

    def begin(self) -> Ticket | None:
        """The next choice, in flight from now on; None: there is none now, or the search is to stop."""
        ...

    def see_through(self, ticket: Ticket, flight: ScheduleEntry) -> None:
        """Carry it out, and end it as that one ended."""
        ...

    def land(self, ticket: Ticket) -> None:
        """It is in flight no longer, and nothing came of it."""
        ...


def follow(order: list[tuple[ScheduleEntry, ...]], crew: Crew) -> None:
    """Do again what was done between two times that a search stood still (`agent.run.schedule.schedule`), and so on,
    until nothing can be begun. What is done again is taken out of `order`."""
    while order and (first := crew.begin()) is not None:
        _fly(order.pop(0), first, crew)


def _fly(formation: tuple[ScheduleEntry, ...], first: Ticket, crew: Crew) -> None:
    """What never came to an end is begun, so that it counts as in flight, and not carried out. Where the search has
    parted from what it follows, what is not there is passed over."""
    begun = [first]
    landed = set[int]()
    for flight in formation:
        while flight.since + len(begun) < flight.begun and (ticket := crew.begin()) is not None:
            begun.append(ticket)
        if (place := flight.number - flight.since) < len(begun):
            crew.see_through(begun[place], flight)
            landed.add(place)
    for place, ticket in enumerate(begun):
        if place not in landed:
            crew.land(ticket)
