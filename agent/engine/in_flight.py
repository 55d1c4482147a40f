"""Tickets: choices on their way, and which of them are in flight."""

from __future__ import annotations

from dataclasses import dataclass

from agent.policy import Policy
from agent.run.events import Begun
from agent.run.in_progress import SUSPECT
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry
from agent.run.tree.choice import Choice
from agent.run.tree.tree import NodeId, Work

__all__ = ["InFlight", "Ticket"]


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One choice on its way: who proposes, and the how-manieth of that policy at the node and of the run it is."""

    choice: Choice
    policy: Policy | None
    index: int
    number: int
    began: int
    """How many choices had begun before it (`agent.run.schedule`)."""
    nodes: int
    """That there were then: of those that came later its policy is shown none."""
    attempts: int
    """Expansions of the node that had ended then, likewise."""
    lost: int = 0
    """How often it was lost before with the process that carried it out."""

    @property
    def node(self) -> NodeId:
        """Where it is carried out."""
        return self.choice.node

    @property
    def policy_id(self) -> str:
        """Empty where no policy is asked."""
        return self.policy.policy_id if self.policy else ""

    @property
    def work(self) -> Work:
        """As the tree counts it."""
        return self.choice.node, self.choice.act, self.choice.other, self.policy_id

    @property
    def suspect(self) -> bool:
        """Whether it may be what ends the process."""
        return self.lost >= SUSPECT

    @property
    def event(self) -> Begun:
        """That it has begun."""
        return Begun(self.choice, self.began, self.index, self.policy_id, self.nodes, self.attempts)


class InFlight:
    """What is in flight since the search stood still for the last time. Changed under the engine's lock."""

    def __init__(self, run: Run) -> None:
        self._tree = run.tree
        self._tickets: set[Ticket] = set()
        self._since = self.begun = run.begun
        self.cuts: dict[Ticket, int | None] = {}
        """The turns after which expansions are or were ended; None: they come to their own end."""

    @property
    def orders(self) -> set[int | None]:
        """The numbers of the orders that are being obeyed."""
        return {ticket.choice.order for ticket in self._tickets}

    @property
    def suspect(self) -> bool:
        """Whether nothing may be begun beside what is in flight."""
        return any(ticket.suspect for ticket in self._tickets)

    def has(self, begun: Begun) -> bool:
        """Whether that is in flight."""
        return any((ticket.work, ticket.index) == (begun.work, begun.index) for ticket in self._tickets)

    def begin(self, ticket: Ticket) -> None:
        """It is in flight from now on."""
        self._tree.begin(*ticket.work)
        self._tickets.add(ticket)
        self.begun += 1

    def land(self, ticket: Ticket) -> bool:
        """It is in flight no longer; whether it was."""
        if landed := ticket in self._tickets:
            self._tickets.remove(ticket)
            self._tree.end(*ticket.work)
        self.cuts.pop(ticket, None)
        return landed

    def flight(self, ticket: Ticket) -> ScheduleEntry:
        """For the record, where it ends now."""
        return ScheduleEntry(ticket.began, self.begun, self._since, self.cuts.get(ticket))
