"""Session: one session of one run: what it works with, and how it records what it finds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from agent.engine.components import Components
from agent.engine.model_calls import ModelGateway
from agent.run.events import Added, Event, Noted, Spent
from agent.run.run import Run
from agent.task import Task

__all__ = ["AtOnce", "Session"]


class AtOnce(threading.Event):
    """A cancellation by whoever waits for the answer: what is not verified yet is given as it is."""


class Session:
    """What all who work on a run have in common. Thread-safe."""

    def __init__(
        self,
        task: Task,
        parts: Components,
        run: Run,
        cancel: threading.Event,
        on_event: Callable[[Event], None],
        known: Run | None = None,
    ) -> None:
        self.task, self.parts, self.run, self.cancel, self.on_event = task, parts, run, cancel, on_event
        self.known = known
        """Another run of the task: what it measured of a state is not measured again."""
        self.asker = ModelGateway(run, parts.budget, on_event)
        self._finding = threading.RLock()

    def record(self, event: Event) -> None:
        """Change the run, count what that used, and tell whoever watches."""
        self.run.record(event)
        if isinstance(event, Added):
            self.parts.budget.count_node()
        elif isinstance(event, Spent):
            self.parts.budget.settle(event.usage)
        self.on_event(event)

    def once(self, key: str, find: Callable[[], Any]) -> Any:
        """A fact about the task: found once, then read from the journal. Others that want one wait meanwhile."""
        if (known := self.run.note(0, key)) is not None:
            return known
        with self._finding:
            if self.run.note(0, key) is None:
                self.record(Noted(0, key, find()))
            return self.run.note(0, key)
