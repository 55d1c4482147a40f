"""The expansions in flight: those that have started and not ended."""

from __future__ import annotations

from agent.engine.expansion import Expansion
from agent.run.events import Begun
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry


class InFlight:
    """Expansions started since the engine was last idle. Changed under the engine's lock."""

    def __init__(self, run: Run) -> None:
        self._tree = run.tree
        self._expansions: set[Expansion] = set()
        self._since = self.begun_count = run.begun_count
        self.cuts: dict[Expansion, int | None] = {}
        """The turns after which an expansion is or was ended; None: it runs to completion."""

    @property
    def orders(self) -> set[int | None]:
        """The numbers of the orders that are being carried out."""
        return {expansion.choice.order for expansion in self._expansions}

    @property
    def suspect(self) -> bool:
        """Whether an expansion in flight must be carried out alone."""
        return any(expansion.suspect for expansion in self._expansions)

    def has(self, begun: Begun) -> bool:
        """Whether the expansion that this event started is in flight."""
        return any((each.work, each.index) == (begun.work, begun.index) for each in self._expansions)

    def start(self, expansion: Expansion) -> None:
        """Count the expansion as in flight."""
        self._tree.begin(*expansion.work)
        self._expansions.add(expansion)
        self.begun_count += 1

    def finish(self, expansion: Expansion) -> bool:
        """Stop counting the expansion as in flight. Returns whether it was."""
        if in_flight := expansion in self._expansions:
            self._expansions.remove(expansion)
            self._tree.end(*expansion.work)
        self.cuts.pop(expansion, None)
        return in_flight

    def entry(self, expansion: Expansion) -> ScheduleEntry:
        """The schedule entry of an expansion that ends now, for the journal."""
        return ScheduleEntry(expansion.begun_before, self.begun_count, self._since, self.cuts.get(expansion))
