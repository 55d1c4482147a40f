"""Solves one instance on a machine of the cluster, and sends the run's folder back."""

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
from benchmarks.batch.cluster import transfer
from benchmarks.batch.cluster.coordinator import Ask, WorkerLease
from benchmarks.batch.cluster.remote_budget import RemoteBudget
from benchmarks.batch.runner import solver_of, state_of
from benchmarks.batch.status import InstanceStatus
from benchmarks.data.instances import InstanceBroken
from benchmarks.data.sources import open_source


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """What all workers of a batch receive."""

    source: str
    """The name of the source of instances on the workers."""
    reveal: bool
    settings: Settings


def work(job: WorkerJob, name: str, ask: Ask, cancel: threading.Event) -> Result:
    """Solve an instance in a temporary folder and send the run to the coordinator.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: as `agent.build.composition.start`.
    """
    lease: WorkerLease = ask("begin", name)
    os.environ.update(lease.environment)
    _log_without_secrets()
    with tempfile.TemporaryDirectory(prefix="ramify-cluster-", ignore_cleanup_errors=True) as place:
        try:
            result = _solved(job, name, ask, lease, Path(place), cancel)
        except Exception as error:
            _send_back(Path(place) / name, ask, lease, ended=_is_finished(None, error))
            raise
        _send_back(Path(place) / name, ask, lease, ended=_is_finished(result, result.error))
        on_engine = any((Path(place) / name / STORE / note).exists() for note in ("volume", "commit"))
    if on_engine:
        for left in leftovers(all_users=True):
            left.remove()
    return result


@dataclass(slots=True)
class _StatusReporter:
    """Reports the status of an attempt to the coordinator. Thread-safe."""

    ask: Ask
    name: str
    attempt: int
    status: InstanceStatus = field(default_factory=InstanceStatus)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, news: Event | InstanceStatus) -> None:
        with self.lock:
            self.status = news if isinstance(news, InstanceStatus) else self.status.after(news)
            self.ask("report_status", self.name, self.attempt, self.status)


def _is_finished(result: Result | None, error: Exception | None) -> bool:
    interrupted = result is not None and result.stop in (Stop.INTERRUPTED, Stop.BATCH)
    return not interrupted and state_of(result, error) in ("done", "limit")


def _send_back(run_dir: Path, ask: Ask, lease: WorkerLease, *, ended: bool) -> None:
    if (run_dir / "journal.jsonl").is_file():
        transfer.send(run_dir, lambda piece: ask("receive", run_dir.name, lease.attempt, piece))
        ask("unpack", run_dir.name, lease.attempt, ended)


def _log_without_secrets() -> None:
    """Redact secrets in what libraries log, since Ray writes it to a file."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _solved(job: WorkerJob, name: str, ask: Ask, lease: WorkerLease, place: Path, cancel: threading.Event) -> Result:
    source = open_source(job.source, place / "clones", reveal=job.reveal)
    solve = solver_of(source, job.settings, RemoteBudget(ask, name, lease.attempt, time.monotonic() + lease.left_s))
    instance = next((i for i in source.instances() if i.id == name), None)
    if instance is None:
        raise InstanceBroken(f"{job.source} has no instance {name} on this machine")
    return solve(instance, place / name, cancel, _StatusReporter(ask, name, lease.attempt).report)
