"""Work: one instance on a machine of the cluster, from the call to the run's folder on its way back."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from agent.budget import Stop
from agent.cli.cleanup import leftovers
from agent.redaction import RedactingFormatter
from agent.run.events import Event
from agent.run.paths import STORE
from agent.settings import Settings
from agent.solver.result import Result
from benchmarks.batch.cluster import transfer as parcels
from benchmarks.batch.cluster.coordinator import Ask, WorkerLease
from benchmarks.batch.cluster.remote_budget import DeskPurse
from benchmarks.batch.runner import solver_of, state_of
from benchmarks.batch.status import Standing
from benchmarks.data.instances import InstanceBroken
from benchmarks.data.sources import open_source

__all__ = ["Order", "work"]


@dataclass(frozen=True, slots=True)
class Order:
    """What all workers of a batch are told."""

    source: str
    """What the instances are known by on the workers."""
    reveal: bool
    settings: Settings


def work(order: Order, name: str, ask: Ask, cancel: threading.Event) -> Result:
    """Solve an instance in a folder that is gone afterwards; the run is at the desk then.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: as `agent.build.composition.start`.
    """
    welcome: WorkerLease = ask("begin", name)
    os.environ.update(welcome.environment)
    _log_without_secrets()
    with tempfile.TemporaryDirectory(prefix="ramify-cluster-", ignore_cleanup_errors=True) as place:
        try:
            result = _solved(order, name, ask, welcome, Path(place), cancel)
        except Exception as error:
            _hand_over(Path(place) / name, ask, welcome, ended=_settled(None, error))
            raise
        _hand_over(Path(place) / name, ask, welcome, ended=_settled(result, result.error))
        on_engine = any((Path(place) / name / STORE / note).exists() for note in ("volume", "commit"))
    if on_engine:
        for left in leftovers():
            left.remove()
    return result


@dataclass(slots=True)
class _Telling:
    """Tells the desk how an attempt stands, of events from any thread."""

    ask: Ask
    name: str
    attempt: int
    standing: Standing = field(default_factory=Standing)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, news: Event | Standing) -> None:
        with self.lock:
            self.standing = news if isinstance(news, Standing) else self.standing.after(news)
            self.ask("stands", self.name, self.attempt, self.standing)


def _settled(result: Result | None, error: Exception | None) -> bool:
    interrupted = result is not None and result.stop in (Stop.INTERRUPTED, Stop.BATCH)
    return not interrupted and state_of(result, error) in ("done", "limit")


def _hand_over(run_dir: Path, ask: Ask, welcome: WorkerLease, *, ended: bool) -> None:
    if (run_dir / "journal.jsonl").is_file():
        parcels.send(run_dir, lambda piece: ask("receive", run_dir.name, welcome.attempt, piece))
        ask("unpack", run_dir.name, welcome.attempt, ended)


def _log_without_secrets() -> None:
    """What libraries log goes to a file of Ray's."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _solved(order: Order, name: str, ask: Ask, welcome: WorkerLease, place: Path, cancel: threading.Event) -> Result:
    source = open_source(order.source, place / "clones", reveal=order.reveal)
    solve = solver_of(source, order.settings, DeskPurse(ask, name, welcome.attempt, time.monotonic() + welcome.left_s))
    instance = next((each for each in source.instances() if each.id == name), None)
    if instance is None:
        raise InstanceBroken(f"{order.source} holds no instance {name} on this machine")
    return solve(instance, place / name, cancel, _Telling(ask, name, welcome.attempt).take)
