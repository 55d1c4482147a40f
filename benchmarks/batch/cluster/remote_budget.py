"""Remote budget: the limits of the whole batch, as a worker's budget asks the coordinator for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.budget import BudgetSpent, Stop, Usage
from benchmarks.batch.cluster.coordinator import Ask

__all__ = ["RemoteBudget"]


@dataclass(frozen=True, slots=True)
class RemoteBudget:
    """An `agent.budget.ParentBudget`. Thread-safe if `ask` is."""

    ask: Ask
    name: str
    """The instance; empty: the program beside the coordinator, which is not an attempt."""
    attempt: int
    """As `WorkerLease`; 0 without a name."""
    until: float
    """When the limit of seconds is reached, by this machine's `time.monotonic`; may be infinite."""

    @property
    def left_s(self) -> float:
        """As `ParentBudget`."""
        return self.until - time.monotonic()

    def stop(self, nodes: int = 0) -> Stop | None:
        """As `ParentBudget`."""
        found: Stop | None = self.ask("stop", nodes)
        return found

    def used_up(self) -> bool:
        """As `ParentBudget`."""
        return bool(self.ask("used_up"))

    @contextmanager
    def reserve(self, estimate: Usage) -> Iterator[Callable[[Usage], None]]:
        """As `ParentBudget`. Raises BudgetSpent."""
        ticket: int | Stop = self.ask("reserve", self.name, self.attempt, estimate)
        if isinstance(ticket, Stop):
            raise BudgetSpent(ticket)
        try:
            yield lambda usage: self.settle(usage, ticket=ticket)
        finally:
            self.ask("release", ticket)

    def settle(self, usage: Usage, nodes: int = 0, ticket: int | None = None) -> None:
        """As `ParentBudget`; from a ticket, if there is one."""
        self.ask("settle", usage, nodes, ticket)
