"""Runs a batch: instances in worker threads, each attempt classified and recorded when it ends.

Law: an instance's failure never ends the batch, except when the settings are at fault. The first SIGINT lets what is
running come to its end; the second, or SIGTERM, stops it at its next step, to be resumed; the third kills.
"""

from __future__ import annotations

import logging
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

from agent.analysis.report.summary import as_json
from agent.budget import ParentBudget, Stop
from agent.build.composition import start
from agent.errors import ConfigError, PolicyError, UsageError
from agent.run.events import Event
from agent.settings import Settings
from agent.solver.solve import Result
from benchmarks.batch.batch import Attempt, Batch, State
from benchmarks.batch.sandbox_choice import fitted, with_image
from benchmarks.batch.status import Standing
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source
from sandboxes import RegistryBusy, RegistryDown, SandboxError, SandboxUnavailable

__all__ = [
    "Observer",
    "Solve",
    "StopSignal",
    "Take",
    "in_order",
    "run_batch",
    "solver_of",
    "state_of",
    "stop_on_signals",
]

log = logging.getLogger(__name__)

LIMITS = frozenset({Stop.NODES, Stop.MEASUREMENTS, Stop.CALLS, Stop.TOKENS, Stop.COST, Stop.TIME})

OnEvent = Callable[[Event | Standing], None]
Solve = Callable[[Instance, Path, threading.Event, OnEvent], Result]
"""Solves an instance in a run directory, until its end or until the event is set."""

Take = Callable[[deque[Instance], Instance | None], Instance]
"""Takes the next instance out of those that wait; it is given the instance that ended and left its place, or None for a
new place."""


def in_order(waiting: deque[Instance], ended: Instance | None) -> Instance:
    """Takes the first one that waits."""
    return waiting.popleft()


class Observer(Protocol):
    """Observes a batch, from several threads."""

    def started(self, instance: Instance) -> None:
        """An attempt began."""
        ...

    def advanced(self, instance: Instance, news: Event | Standing) -> None:
        """An attempt's run recorded an event, or its status is known."""
        ...

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """An attempt was recorded; None: it was interrupted and can be resumed."""
        ...


@dataclass(frozen=True, slots=True)
class Observers:
    """Several observers, told one after the other."""

    all: tuple[Observer, ...]

    def started(self, instance: Instance) -> None:
        """As `Observer.started`."""
        for each in self.all:
            each.started(instance)

    def advanced(self, instance: Instance, news: Event | Standing) -> None:
        """As `Observer.advanced`."""
        for each in self.all:
            each.advanced(instance, news)

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """As `Observer.ended`."""
        for each in self.all:
            each.ended(instance, attempt)


class StopSignal:
    """How a batch is being stopped."""

    def __init__(self) -> None:
        self.drain = threading.Event()
        """Begin nothing new."""
        self.cancel = threading.Event()
        """Stop running instances at their next step."""

    def press(self) -> None:
        """One step further: drain, then cancel."""
        (self.cancel if self.drain.is_set() else self.drain).set()

    def stop(self) -> None:
        """Drain and cancel."""
        self.drain.set()
        self.cancel.set()


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Brakes that SIGINT presses and SIGTERM pulls, for the block. Only in the main thread."""
    brakes = StopSignal()

    def react(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            brakes.stop()
        else:
            brakes.press()
        if brakes.cancel.is_set():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    before = {number: signal.signal(number, react) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield brakes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def solver_of(source: Source, settings: Settings, budget: ParentBudget | None = None) -> Solve:
    """Makes the `Solve` of a batch: the one place where a batch meets the solver. All instances together spend from
    `budget`."""

    def solve_instance(instance: Instance, run_dir: Path, cancel: threading.Event, on_event: OnEvent) -> Result:
        source.prepare(instance)
        task = fitted(instance.task, settings)
        placed = with_image(settings, task.workspace.image)
        return start(task, placed, run_dir, cancel=cancel, on_event=on_event, parent=budget)

    return solve_instance


def run_batch(
    batch: Batch,
    instances: Sequence[Instance],
    solve: Solve,
    *,
    workers: int,
    brakes: StopSignal,
    observer: Observer,
    lacking: Callable[[], str] = str,
    take: Take = in_order,
) -> str:
    """Attempt what is left of `instances`, so many at a time, in the order that `take` takes them. Why nothing more was
    begun before the end, for people; empty: all was, or the brakes were pressed. `lacking` says, before each, what
    there is too little of.

    Raises:
        ConfigError, sandboxes.SandboxUnavailable: the settings are at fault; what was running can be resumed.
        OSError: an attempt cannot be recorded; likewise.
    """
    waiting = deque(batch.left(instances))
    running: dict[Future[Result], Instance] = {}
    places: deque[Instance] = deque()
    fault: BaseException | None = None
    exhaustion, halted = _Exhaustion(), ""
    with ThreadPoolExecutor(workers, thread_name_prefix="instance") as pool, _stopping_on_errors(brakes):
        while True:
            while waiting and len(running) < workers and not brakes.drain.is_set():
                if halted := halted or lacking():
                    break
                instance = take(waiting, places.popleft() if places else None)
                running[pool.submit(_attempt, batch, instance, solve, brakes, observer)] = instance
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                places.append(running.pop(future))
                attempt = _recorded(batch, places[-1], future, observer)
                halted = halted or exhaustion.after(future)
                if attempt is not None and attempt.state == "config":
                    fault = fault or _error_of(future)
                    brakes.stop()
    if fault is not None:
        raise fault
    return halted


@contextmanager
def _stopping_on_errors(brakes: StopSignal) -> Iterator[None]:
    """What is running is stopped by an error of the block, whoever waits for it then."""
    try:
        yield
    except BaseException:
        brakes.stop()
        raise


def _recorded(batch: Batch, instance: Instance, future: Future[Result], observer: Observer) -> Attempt | None:
    """Record an attempt that ended, and tell the observers; None if it was interrupted."""
    attempt = attempt_of(instance, future)
    if attempt is not None:
        batch.record(attempt)
        _discard_clone(instance, attempt)
    observer.ended(instance, attempt)
    return attempt


def _attempt(batch: Batch, instance: Instance, solve: Solve, brakes: StopSignal, observer: Observer) -> Result:
    observer.started(instance)
    run_dir = batch.run_dir(instance)
    return solve(instance, run_dir, brakes.cancel, lambda news: observer.advanced(instance, news))


def attempt_of(instance: Instance, future: Future[Result]) -> Attempt | None:
    """The attempt of a run that ended; None if it was interrupted. An error of any kind is the instance's own."""
    error = _error_of(future)
    said = "" if error is None else f"{type(error).__name__}: {error}"
    if (raised := future.exception()) is not None:
        log.warning("%s: %s", instance.id, said, exc_info=raised)
        return Attempt(instance.id, state_of(None, error), instance.mode, error=said)
    result = future.result()
    if result.stop in (Stop.INTERRUPTED, Stop.BATCH):
        return None
    facts = as_json(result, result.run_dir / "patch.diff" if result.patch else None)
    return Attempt(instance.id, state_of(result, error), instance.mode, result.patch, said, facts, result.usage)


class _Exhaustion:
    """Failures that every other attempt would meet as well."""

    def __init__(self) -> None:
        self._down = False

    def after(self, future: Future[Result]) -> str:
        """Why nothing more should begin; empty: no reason. Two attempts in a row have to say that a registry is down:
        it may fail for one image only."""
        error, before = _error_of(future), self._down
        self._down = isinstance(error, RegistryDown)
        if isinstance(error, RegistryBusy) or (before and self._down):
            return str(error)
        batch = not future.exception() and future.result().stop is Stop.BATCH
        return "a limit of all instances together is met (give a higher one)" if batch else ""


def _error_of(future: Future[Result]) -> BaseException | None:
    return future.exception() or future.result().error


def state_of(result: Result | None, error: BaseException | None) -> State:
    """The state of an attempt that was not interrupted. A policy that cannot continue, or a task that it does not
    accept, is the solver's own end."""
    if isinstance(error, ConfigError | SandboxUnavailable):
        return "config"
    if isinstance(error, PolicyError | UsageError) or (result is not None and result.resolved):
        return "done"
    if result is None or result.stop is Stop.FAILED or isinstance(error, SandboxError):
        return "infra"
    return "limit" if result.stop in LIMITS else "done"


def _discard_clone(instance: Instance, attempt: Attempt) -> None:
    """Remove the clone of a run that came to its end."""
    if attempt.settled and instance.task.workspace.path is not None:
        shutil.rmtree(instance.task.workspace.path, ignore_errors=True)
