"""Session: one process that works on a run, and the objects that all its components share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from agent.engine.components import Components
from agent.engine.model_calls import ModelGateway
from agent.engine.recorder import Recorder
from agent.run.events import Event, Noted
from agent.run.run import Run
from agent.task import Task


class Cancellation(threading.Event):
    """Cancels a search from a terminal. Unless it `verifies`, the best patch is returned without verification."""

    verifies = False
    """Set by a replay that ends where the recorded run ended and was verified."""


class Session:
    """The task, the components of the search, the run, and the ways to change the run and to ask models.
    Thread-safe."""

    def __init__(
        self,
        task: Task,
        components: Components,
        run: Run,
        cancel: threading.Event,
        on_event: Callable[[Event], None],
        prior_run: Run | None = None,
    ) -> None:
        self.task, self.components, self.run, self.cancel = task, components, run, cancel
        self.prior_run = prior_run
        """Another run of the task, whose measurements are reused."""
        self.record = Recorder(run, components.budget, on_event)
        self.gateway = ModelGateway(self.record)
        self._finding = threading.RLock()

    def memo(self, key: str, find: Callable[[], Any]) -> Any:
        """Return a fact about the task. It is found out the first time, while other callers wait, and read from the
        journal afterwards."""
        if (known := self.run.note(0, key)) is not None:
            return known
        with self._finding:
            if self.run.note(0, key) is None:
                self.record(Noted(0, key, find()))
            return self.run.note(0, key)
