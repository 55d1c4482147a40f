"""Executors: they decide where the instances of a batch are worked on.

`benchmarks.batch.runner.run_batch` always gets a `Solve`, which it calls in a thread of this process. There, the
`Solve` does the work itself or waits for a machine of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from agent.budget import Budget, ParentBudget
from agent.errors import UsageError
from agent.settings import Settings
from benchmarks.batch.cluster.requests import Cluster
from benchmarks.batch.runner import Offer, Solve

Executor = Callable[[Path, Budget, Callable[[ParentBudget], Solve]], AbstractContextManager[Offer]]
"""Called with the batch's folder, the limits of the whole batch, and a function that makes a `Solve` for this
process from those limits."""


def executor(name: str, cluster: Cluster, source: str, *, reveal: bool, settings: Settings) -> Executor:
    """Return the executor with this name.

    Raises:
        UsageError: the name is unknown, or the executor does not support the options.
    """
    if name == "ray":
        return _ray(cluster, source, reveal=reveal, settings=settings)
    if name != "local":
        raise UsageError(f"unknown executor {name!r}: local or ray")
    if cluster != Cluster():
        raise UsageError("--ray-address, --ray-resources and --ray-env need --executor ray: add it, or leave them out")
    return _local


@contextmanager
def _local(out: Path, total: Budget, make: Callable[[ParentBudget], Solve]) -> Iterator[Offer]:
    yield Offer(make(total), 1)


def _ray(cluster: Cluster, source: str, *, reveal: bool, settings: Settings) -> Executor:
    from benchmarks.batch.cluster.ray_backend import on_ray
    from benchmarks.batch.cluster.task import WorkerJob

    if settings.memory.path and settings.memory.enabled:
        raise UsageError("a memory is a file of one machine: run with --executor local, or -c memory.enabled=false")
    if settings.begin_from:
        raise UsageError("the folder of `begin_from` is on one machine: run with --executor local, or leave it out")
    return partial(on_ray, cluster, WorkerJob(source, reveal, settings))
