"""Lets a worker's budget ask the coordinator for the limits of the whole batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.budget import BudgetSpent, Stop, Usage
from benchmarks.batch.cluster.coordinator import Ask


@dataclass(frozen=True, slots=True)
class RemoteBudget:
    """An `agent.budget.ParentBudget` that asks the coordinator. Thread-safe if `ask` is."""

    ask: Ask
    name: str
    """The instance's id; empty for the program that started the coordinator, which is not an attempt."""
    attempt: int
    """The number of the attempt, as in `WorkerLease`; 0 if `name` is empty."""
    until: float
    """When the time limit is reached, by this machine's `time.monotonic`; may be infinite."""

    @property
    def left_s(self) -> float:
        """As `ParentBudget.left_s`."""
        return self.until - time.monotonic()

    def stop(self, nodes: int = 0) -> Stop | None:
        """As `ParentBudget.stop`."""
        limit: Stop | None = self.ask("stop", nodes)
        return limit

    def used_up(self) -> bool:
        """As `ParentBudget.used_up`."""
        return bool(self.ask("used_up"))

    @contextmanager
    def reserve(self, estimate: Usage) -> Iterator[Callable[[Usage], None]]:
        """Reserve as in `ParentBudget.reserve`. Raises BudgetSpent."""
        reservation: int | Stop = self.ask("reserve", self.name, self.attempt, estimate)
        if isinstance(reservation, Stop):
            raise BudgetSpent(reservation)
        try:
            yield lambda usage: self.ask("charge", usage, 0, reservation)
        finally:
            self.ask("release", reservation)

    def charge(self, usage: Usage, nodes: int = 0) -> None:
        """As `ParentBudget.charge`."""
        self.ask("charge", usage, nodes)
