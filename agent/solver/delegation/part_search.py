"""The search for one part. It works in states of its own, like the search for a whole task."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Cancel

from agent.actions import Observation
from agent.engine.components import Components
from agent.run.events import Asked, Event, Refused, Spent, Started
from agent.run.run import Run
from agent.run.tree.node import Node, Step
from agent.settings import Settings
from agent.solver import solve as solver
from agent.solver.result import Result
from agent.task import Task, dump_task
from sandboxes import Snapshot


@dataclass(frozen=True, slots=True)
class PartResult:
    """The result of the search of a part."""

    base: Snapshot
    state: Snapshot | None
    """The best state; None: the search found nothing."""
    done: bool
    """Whether the part's goals are reached in that state."""
    result: Result
    turn: Step | None = None
    """The turn of a model that led to that state, submitted or not; None: no model made the state."""


PartSearch = Callable[[Task, Snapshot, Path, int, Run], PartResult]
"""Searches for a part, given its task, the state to begin at, the directory of its run, the number of parts, and the
delegating run.
"""


@dataclass(frozen=True, slots=True)
class PartSearcher:
    """A `PartSearch` that runs `agent.solver.solve.solve`. `make_parts(settings, run, held)` makes the components of a
    search, with the sandboxes and the budget of the delegating run. Thread-safe."""

    settings: Settings
    make_parts: Callable[[Settings, Run, ExitStack], Components]
    cancel: Cancel
    on_event: Callable[[Event], None]

    def __call__(self, task: Task, base: Snapshot, directory: Path, parts: int, prior_run: Run) -> PartResult:
        """Search a part from a state, or continue the search; a solved one is not run again. States that
        `prior_run`, the delegating run, has measured are not measured again.

        Raises:
            agent.errors.RamifyError, sandboxes.SandboxError: as `agent.solver.solve.solve`.
        """
        settings = share(self.settings, parts)
        dumped = settings.model_dump(mode="json")
        with Run.open(directory) as run, ExitStack() as held:
            if run.started is None:
                run.record(Started(dump_task(task), dumped, base))
            components = self.make_parts(settings, run, held)
            result = solver.solve(
                task,
                components,
                run,
                settings=dumped,
                cancel=self.cancel,
                on_event=self._pass_on_usage,
                prior_run=prior_run,
            )
            if result.best_node is None:
                return PartResult(base, None, result.resolved, result)
            best = run.tree[result.best_node]
            done = result.resolved or not run.tree.root.report.failures
            return PartResult(base, best.snapshot, done, result, _turn(best, task.id) if best.by_model else None)

    def _pass_on_usage(self, event: Event) -> None:
        """Pass on events about usage. The states of the search do not belong to the delegating run."""
        if isinstance(event, (Spent, Asked, Refused)):
            self.on_event(event)


def _turn(best: Node, name: str) -> Step:
    submit = best.submission
    seen = () if submit is None else (Observation("Submitted."),)
    return Step(() if submit is None else (submit,), seen, f"The work of {name}")


def share(settings: Settings, parts: int) -> Settings:
    """Return the settings for one of `parts` parts: an equal share of the workers and of each limit except the time
    limit."""

    def of(limit: float | None) -> float | None:
        return max(1, math.ceil(limit / parts)) if isinstance(limit, int) else limit and limit / parts

    limits = settings.budget
    fewer = {name: of(getattr(limits, name)) for name in type(limits).model_fields if name != "max_seconds"}
    workers = max(1, settings.workers // parts)
    budget = limits.model_copy(update=fewer)
    return settings.model_copy(update={"delegate": False, "budget": budget, "workers": workers})
