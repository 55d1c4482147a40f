"""Runs a batch: instances in worker threads, each attempt classified and recorded when it ends.

Invariant: an instance's failure never ends the batch, unless the settings are at fault. The first SIGINT lets running
instances finish; the second, or SIGTERM, interrupts them at their next step, to be resumed later; the third kills.
"""

from __future__ import annotations

import logging
import shutil
import signal
import sys
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
from agent.errors import ConfigError, ModelError, PolicyError, RamifyError, UsageError
from agent.run.events import Event
from agent.settings import Settings
from agent.solver.result import Result
from benchmarks.batch.batch import Attempt, Batch, State
from benchmarks.batch.sandbox_choice import fitted, with_image
from benchmarks.batch.status import InstanceStatus
from benchmarks.data.instances import Instance, InstanceBroken
from benchmarks.data.sources import Source
from sandboxes import RegistryBusy, RegistryDown, SandboxError, SandboxUnavailable

log = logging.getLogger(__name__)

LIMITS = frozenset({Stop.NODES, Stop.MEASUREMENTS, Stop.CALLS, Stop.TOKENS, Stop.COST, Stop.TIME})

OnEvent = Callable[[Event | InstanceStatus], None]
Solve = Callable[[Instance, Path, threading.Event, OnEvent], Result]
"""Works on an instance in a run directory until it ends or the event is set."""

Take = Callable[[deque[Instance], Instance | None], Instance]
"""Removes and returns the next of the waiting instances. The second argument is the instance whose end freed a worker;
None if the worker was not used before."""


def in_order(waiting: deque[Instance], ended: Instance | None) -> Instance:
    """Take the first waiting instance."""
    return waiting.popleft()


@dataclass(frozen=True, slots=True)
class Offer:
    """What an executor provides while it is open."""

    solve: Solve
    room: int
    """The number of instances to run at the same time, unless the user gives one."""
    take: Take = in_order
    """Chooses the next instance."""


class Observer(Protocol):
    """Observes a batch. Its methods are called from several threads; a subclass overrides those that it needs."""

    def started(self, instance: Instance) -> None:
        """An attempt began."""
        return

    def advanced(self, instance: Instance, news: Event | InstanceStatus) -> None:
        """An attempt's run recorded an event, or its worker reported a status."""
        return

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """An attempt was recorded; None: it was interrupted and can be resumed."""
        return


class StopSignal:
    """How urgently a batch is being stopped."""

    def __init__(self) -> None:
        self.drain = threading.Event()
        """Set when no new instance may start."""
        self.cancel = threading.Event()
        """Set when running instances have to stop at their next step."""

    def escalate(self) -> None:
        """Set `drain`; the second time, set `cancel`."""
        (self.cancel if self.drain.is_set() else self.drain).set()

    def stop(self) -> None:
        """Drain and cancel."""
        self.drain.set()
        self.cancel.set()


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Yield a stop signal that SIGINT escalates and SIGTERM sets fully. It works only in the main thread."""
    stopping = StopSignal()

    def react(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            stopping.stop()
        else:
            stopping.escalate()
            again = "" if stopping.cancel.is_set() else "; press Ctrl-C again to interrupt them at their next step"
            sys.stderr.write(f"stopping: no new instances start, and running ones will finish{again}\n")
        if stopping.cancel.is_set():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    before = {number: signal.signal(number, react) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def solver_of(source: Source, settings: Settings, budget: ParentBudget | None = None) -> Solve:
    """Return a `Solve` that runs the solver in this process, with `budget` as the limits of the whole batch. This is
    the only place where a batch calls the solver."""

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
    stopping: StopSignal,
    observers: Sequence[Observer],
    lacking: Callable[[], str] = str,
    take: Take = in_order,
) -> str:
    """Attempt the remaining `instances` with this many workers, in the order that `take` chooses. Before each instance,
    `lacking` returns a shortage that forbids it, or an empty string. Returns why the batch halted early; empty if every
    instance was started, or a signal stopped the batch.

    Raises:
        ConfigError, sandboxes.SandboxUnavailable: the settings are at fault; interrupted runs can be resumed.
        OSError: an attempt cannot be recorded; interrupted runs can be resumed.
    """
    waiting = deque(batch.left(instances))
    running: dict[Future[Result], Instance] = {}
    places: deque[Instance] = deque()
    fault: BaseException | None = None
    exhaustion, halted = _Exhaustion(), ""
    with ThreadPoolExecutor(workers, thread_name_prefix="instance") as pool, _stopping_on_errors(stopping):
        while True:
            while waiting and len(running) < workers and not stopping.drain.is_set():
                if halted := halted or lacking():
                    break
                instance = take(waiting, places.popleft() if places else None)
                running[pool.submit(_attempt, batch, instance, solve, stopping, observers)] = instance
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                places.append(running.pop(future))
                attempt = _recorded(batch, places[-1], future, observers)
                halted = halted or exhaustion.after(future)
                if attempt is not None and attempt.state == "config":
                    fault = fault or _error_of(future)
                    stopping.stop()
    if fault is not None:
        raise fault
    return halted


@contextmanager
def _stopping_on_errors(stopping: StopSignal) -> Iterator[None]:
    """Stop running instances if the block raises, because the thread pool around it waits for them."""
    try:
        yield
    except BaseException:
        stopping.stop()
        raise


def _recorded(
    batch: Batch, instance: Instance, future: Future[Result], observers: Sequence[Observer]
) -> Attempt | None:
    """Record the attempt of a future that is done and inform the observers; None if it was interrupted."""
    attempt = attempt_of(instance, future)
    if attempt is not None:
        batch.record(attempt)
        _discard_clone(instance, attempt)
    for observer in observers:
        observer.ended(instance, attempt)
    return attempt


def _attempt(
    batch: Batch, instance: Instance, solve: Solve, stopping: StopSignal, observers: Sequence[Observer]
) -> Result:
    def tell(news: Event | InstanceStatus) -> None:
        for observer in observers:
            observer.advanced(instance, news)

    for observer in observers:
        observer.started(instance)
    return solve(instance, batch.run_dir(instance), stopping.cancel, tell)


def attempt_of(instance: Instance, future: Future[Result]) -> Attempt | None:
    """The attempt of a future that is done; None if it was interrupted. An error of any kind affects only this
    instance."""
    error = _error_of(future)
    message = "" if error is None else _why(error)
    if (raised := future.exception()) is not None:
        log.warning("%s: %s", instance.id, message, exc_info=raised)
        return Attempt(instance.id, state_of(None, error), instance.mode, error=message)
    result = future.result()
    if result.stop in (Stop.INTERRUPTED, Stop.BATCH):
        return None
    facts = as_json(result, result.run_dir / "patch.diff" if result.patch else None)
    return Attempt(instance.id, state_of(result, error), instance.mode, result.patch, message, facts, result.usage)


def _why(error: BaseException) -> str:
    """The message of an error, with the name of its class unless it is Ramify's own."""
    return str(error) if isinstance(error, RamifyError | SandboxError) else f"{type(error).__name__}: {error}"


class _Exhaustion:
    """Recognises failures that would also occur with every other instance."""

    def __init__(self) -> None:
        self._down = False

    def after(self, future: Future[Result]) -> str:
        """Return why no other instance should be started after this attempt; empty if there is no reason. A registry
        counts as down only if two attempts in a row failed because of it, since it can fail for a single image."""
        error, before = _error_of(future), self._down
        self._down = isinstance(error, RegistryDown)
        if isinstance(error, RegistryBusy) or (before and self._down):
            return str(error)
        batch = not future.exception() and future.result().stop is Stop.BATCH
        return "a limit of the whole batch was reached; raise it" if batch else ""


def _error_of(future: Future[Result]) -> BaseException | None:
    return future.exception() or future.result().error


def state_of(result: Result | None, error: BaseException | None) -> State:
    """The state of an attempt that was not interrupted. If the policy cannot continue or does not support the task,
    the attempt counts as done."""
    if isinstance(error, ConfigError | SandboxUnavailable):
        return "config"
    if isinstance(error, InstanceBroken):
        return "broken"
    if isinstance(error, PolicyError | UsageError) or (result is not None and result.resolved):
        return "done"
    if result is None or result.stop is Stop.FAILED or isinstance(error, SandboxError | ModelError):
        return "infra"
    return "limit" if result.stop in LIMITS else "done"


def _discard_clone(instance: Instance, attempt: Attempt) -> None:
    if attempt.finished and instance.task.workspace.path is not None:
        shutil.rmtree(instance.task.workspace.path, ignore_errors=True)
