"""Working: one part searched in states of its own, as any task is."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Cancel

from agent.engine.components import Components
from agent.run.events import Asked, Event, Refused, Spent, Started
from agent.run.run import Run
from agent.settings import Settings
from agent.solver import solve as solver
from agent.solver.result import Result
from agent.task import Task, dump_task
from sandboxes import Snapshot

__all__ = ["Work", "Worker", "Workers", "share"]


@dataclass(frozen=True, slots=True)
class Work:
    """What the search of a part came to."""

    base: Snapshot
    state: Snapshot | None
    """The best one; None: nothing came of it."""
    done: bool
    """Whether its goals are reached there."""
    result: Result


Worker = Callable[[Task, Snapshot, Path, int, Run], Work]
"""Does a part of a task from a state, in a directory of its own, one of so many, for the run that delegates."""


@dataclass(frozen=True, slots=True)
class Workers:
    """A `Worker` that searches. `make_parts(settings, run, held)` makes what a search is made of, over the sandboxes
    and with the budget of the run that delegates. Thread-safe."""

    settings: Settings
    make_parts: Callable[[Settings, Run, ExitStack], Components]
    cancel: Cancel
    on_event: Callable[[Event], None]

    def __call__(self, task: Task, base: Snapshot, directory: Path, parts: int, known: Run) -> Work:
        """Search for one of so many parts from a state, or continue that search; one that has solved it is not run
        again. What `known`, the run that delegates, measured of the state is not measured again.

        Raises:
            agent.errors.RamifyError, sandboxes.SandboxError: as `agent.solver.solve.solve`.
        """
        settings = share(self.settings, parts)
        dumped = settings.model_dump(mode="json")
        with Run.open(directory) as run, ExitStack() as held:
            if run.started is None:
                run.record(Started(dump_task(task), dumped, base))
            made = self.make_parts(settings, run, held)
            result = solver.solve(
                task, made, run, settings=dumped, cancel=self.cancel, on_event=self._tell, known=known
            )
            best = None if result.best_node is None else run.tree[result.best_node].snapshot
            done = result.resolved or (best is not None and not run.tree.root.report.failures)
            return Work(base, best, done, result)

    def _tell(self, event: Event) -> None:
        """What is used counts for whoever watches; its states are not theirs."""
        if isinstance(event, (Spent, Asked, Refused)):
            self.on_event(event)


def share(settings: Settings, parts: int) -> Settings:
    """The settings of one of so many parts: an equal share of each limit but that of seconds, and of the workers."""

    def of(limit: float | None) -> float | None:
        return max(1, math.ceil(limit / parts)) if isinstance(limit, int) else limit and limit / parts

    limits = settings.budget
    fewer = {name: of(getattr(limits, name)) for name in type(limits).model_fields if name != "max_seconds"}
    workers = max(1, settings.workers // parts)
    budget = limits.model_copy(update=fewer)
    return settings.model_copy(update={"delegate": False, "budget": budget, "workers": workers})
