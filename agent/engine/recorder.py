"""Recorder: the only way in which a session changes its run and its budget."""

from __future__ import annotations

from collections.abc import Callable

from agent.budget import Budget, Usage
from agent.run.events import Added, Asked, Event, Spent
from agent.run.run import Run
from agent.run.tree.node import NodeId


class Recorder:
    """Records events, charges the budget for what they used, and tells the observer. Thread-safe."""

    def __init__(self, run: Run, budget: Budget, on_event: Callable[[Event], None] = lambda event: None) -> None:
        self.run, self.budget, self._on_event = run, budget, on_event

    def __call__(self, event: Event, charge: Callable[[Usage], None] | None = None) -> None:
        """Record an event. `charge` is called with its usage if a reservation pays for it; otherwise the budget is
        charged."""
        self.run.record(event)
        if isinstance(event, Added):
            self.budget.count_node()
        elif isinstance(event, Spent | Asked):
            (charge or self.budget.charge)(event.usage if isinstance(event, Spent) else event.answer.usage)
        self._on_event(event)

    def spend(self, usage: Usage, what: str, node: NodeId | None = None) -> None:
        """Record usage that nothing was reserved for, as soon as it occurs."""
        self(Spent(usage, what, node))
