"""Searcher: adds states to a run's tree in one session. It is an engine or a delegation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from agent.budget import Stop
from agent.engine.session import Session
from agent.evaluate.scorer import StagedScorer


class Searcher(Protocol):
    """Expands a tree until there is a reason to stop (`agent.engine.engine.Engine`)."""

    error: Exception | None
    """The error that ended the search if the stop is FAILED."""

    def run(self, cancel: threading.Event, done: Callable[[], Stop | None], /) -> Stop:
        """Add states until `done` gives a reason, nothing is left, a limit is reached or `cancel` is set."""
        ...


MakeSearcher = Callable[[Session, StagedScorer], Searcher]
"""Makes a searcher for a session."""
