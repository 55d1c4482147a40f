"""Growth: what adds states to a run's tree, for one sitting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from agent.budget import Stop
from agent.evaluate.scorer import GoalsFirst
from agent.solver.session import Sitting

__all__ = ["Begin", "Growth"]


class Growth(Protocol):
    """Grows a tree until it is told to stop (`agent.engine.engine.Grower`)."""

    error: Exception | None
    """What ended the growth when the stop is FAILED."""

    def grow(self, cancel: threading.Event, done: Callable[[], Stop | None], /) -> Stop:
        """Until it is done, nothing is left, a limit is reached or `cancel` is set."""
        ...


Begin = Callable[[Sitting, GoalsFirst], Growth]
"""Makes it."""
