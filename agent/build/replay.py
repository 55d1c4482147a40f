"""Replay: the search of a run is repeated from its journal, without a model, a key or the network.

Invariants: an unchanged replay equals the run, or says where it differs; the replayed run is only read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from agent.analysis.compare_runs import ends_expansion, first_difference
from agent.analysis.recorded_model import Archive, Recorded
from agent.budget import Stop
from agent.build import composition
from agent.config import restore
from agent.engine.session import Cancellation
from agent.errors import UsageError
from agent.models import Model
from agent.models.parameters import Parameters
from agent.run.command_queue import put
from agent.run.commands import Order
from agent.run.events import Added, Event, Exhausted, Failed, Merged, Remeasured, Started, Steered
from agent.run.paths import journal_of
from agent.run.run import Run
from agent.run.schedule import ScheduleEntry, schedule
from agent.settings import Settings
from agent.solver.result import Result
from agent.task import load_task


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay."""

    result: Result
    calls: int
    """Model answers that the run had recorded."""
    reused: int
    """How many of those answers were used again."""
    missing: int
    """Model calls without a recorded answer."""
    difference: str | None
    """The first difference from the run; empty if they are equal; None: settings were changed, so that they are not
    compared."""


def replay(
    source: Path,
    directory: Path,
    change: Callable[[dict[str, Any]], Settings] = restore,
    *,
    live: bool = False,
    cancel: Cancellation | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Replayed:
    """Repeat the search of the run at `source` in a new directory, with its settings or with those that `change` makes
    from them. `live`: ask models for answers that were not recorded.

    The orders of people are given again. One worker searches, and starts and ends expansions in the recorded order.
    Earlier versions of ramify did not record that order, so the states of their runs may come in another one. Recorded
    test results of states are reused; the final patch is verified by running the tests.

    Raises:
        agent.errors.UsageError: there is no such run, or it cannot be replayed.
        agent.errors.RamifyError, sandboxes.SandboxError: as `agent.build.composition.start`.
    """
    with Run.read(journal_of(source).parent) as old:
        started = _replayable(old, source)
        settings = change(started.settings)
        same, stop, archive = settings == restore(started.settings), cancel or Cancellation(), Archive(old)
        _take_reports(source, directory)
        result = composition.start(
            load_task(started.task),
            _settings(settings, old, same),
            directory,
            cancel=stop,
            on_event=_Follower(old, directory, stop, on_event) if same else on_event,
            make=partial(_model, archive, live),
            prior_run=old,
            schedule=schedule(_schedule_entries(old)) if same else (),
        )
        with Run.read(directory) as new:
            difference = first_difference(old, new) if same else None
    return Replayed(result, len(archive), archive.given, len(archive.missing), difference)


def _replayable(old: Run, source: Path) -> Started:
    """Return the event with which the run began.

    Raises:
        agent.errors.UsageError: the run cannot be replayed; the message says why.
    """
    started = old.started
    if started is None or not len(old.tree):
        raise UsageError(f"{source}: the run ended before its base state was measured; there is nothing to replay")
    if old.usage.model_calls and not old.asked:
        raise UsageError(f"{source}: its version of ramify did not record the answers of models; solve it again")
    if started.settings.get("delegate"):
        raise UsageError(f"{source} divided its issue into several searches; only a single one can be replayed")
    if started.settings.get("exchange"):
        raise UsageError(
            f"{source} took states from other runs, which its journal does not have; it cannot be replayed"
        )
    checkout = load_task(started.task).workspace.path
    if checkout is not None and not checkout.is_dir():
        raise UsageError(f"{source}: the checkout {checkout} that it searched is missing; restore it as it was then")
    return started


class _Follower:
    """Repeats the user's orders at the same moments, and ends the replay at the point at which the run was ended from
    outside: by a limit, the clock, a signal or an error. The best patch is then verified if the run's was."""

    def __init__(self, old: Run, directory: Path, stop: Cancellation, on_event: Callable[[Event], None]) -> None:
        by_itself = old.ended is not None and Stop[old.ended.stop] in (Stop.SOLVED, Stop.EXHAUSTED, Stop.FINISHED)
        self._stop_after = None if by_itself else old.tree.ended_expansions
        self._verified = old.ended is None or old.ended.verified
        self._orders = list(_orders(old))
        self._directory, self._stop, self._on_event = directory, stop, on_event
        self._ended = 0

    def __call__(self, event: Event) -> None:
        self._on_event(event)
        self._ended += ends_expansion(event)
        if isinstance(event, Added) or ends_expansion(event):
            while self._orders and self._orders[0][0] <= self._ended:
                put(self._directory, self._orders.pop(0)[1])
            if self._ended == self._stop_after:
                self._stop.verifies = self._verified
                self._stop.set()


def _schedule_entries(old: Run) -> Iterator[ScheduleEntry | None]:
    """Yield the schedule entries of all expansions that ended, in the order of their ends."""
    for event in old.journal.events():
        if isinstance(event, (Added, Merged, Remeasured, Failed, Exhausted)):
            yield event.flight


def _orders(old: Run) -> Iterator[tuple[int, Order]]:
    """Yield the orders of people, each with the number of expansions that had ended before it."""
    ended = 0
    for event in old.journal.events():
        ended += ends_expansion(event)
        if isinstance(event, Steered) and event.order.by == "person":
            yield ended, event.order


def _settings(settings: Settings, old: Run, same: bool) -> Settings:
    """Return the settings for one worker: those of the run without the time limit, and without any limits if sessions
    of the run may have had different ones."""
    sessions = sum(event.kind == "ended" for event in old.journal.events())
    names = type(settings.budget).model_fields if sessions > 1 else ("max_seconds", "max_measurements")
    limits = settings.budget.model_copy(update=dict.fromkeys(names)) if same else settings.budget
    return settings.model_copy(update={"budget": limits, "workers": 1})


def _take_reports(source: Path, directory: Path) -> None:
    """Copy the run's test reports, so that the policy sees the same ones."""
    if (source / "reports").is_dir():
        shutil.copytree(source / "reports", directory / "reports")


def _model(archive: Archive, live: bool, name: str, **settings: Any) -> Model:
    from agent.models.registry import make

    named = {field.name: settings[field.name] for field in fields(Parameters) if field.name in settings}
    return Recorded(name, archive, partial(make, name, **settings) if live else None, parameters=Parameters(**named))
