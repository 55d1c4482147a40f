"""The purse: the limits of the whole batch, as a worker's budget asks them of the desk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.budget import BudgetSpent, Stop, Usage
from benchmarks.batch.cluster.coordinator import Ask

__all__ = ["DeskPurse"]


@dataclass(frozen=True, slots=True)
class DeskPurse:
    """A `agent.budget.ParentBudget`. Thread-safe where `ask` is."""

    ask: Ask
    name: str
    """Of the instance; empty: the program beside the desk, which is no attempt."""
    attempt: int
    """As `Welcome`; 0 without a name."""
    until: float
    """When the limit of seconds is met, by this machine's `time.monotonic`; may be infinite."""

    @property
    def left_s(self) -> float:
        """As `Purse`."""
        return self.until - time.monotonic()

    def stop(self, nodes: int = 0) -> Stop | None:
        """As `Purse`."""
        found: Stop | None = self.ask("stop", nodes)
        return found

    def used_up(self) -> bool:
        """As `Purse`."""
        return bool(self.ask("used_up"))

    @contextmanager
    def reserve(self, estimate: Usage) -> Iterator[Callable[[Usage], None]]:
        """As `Purse`. Raises BudgetSpent."""
        ticket: int | Stop = self.ask("reserve", self.name, self.attempt, estimate)
        if isinstance(ticket, Stop):
            raise BudgetSpent(ticket)
        try:
            yield lambda usage: self.settle(usage, ticket=ticket)
        finally:
            self.ask("release", ticket)

    def settle(self, usage: Usage, nodes: int = 0, ticket: int | None = None) -> None:
        """As `Purse`; of what a ticket holds back, where there is one."""
        self.ask("settle", usage, nodes, ticket)
