"""Executors: where the instances of a batch are solved. `benchmarks.batch.runner.run_batch` gets a `Solve` in either
case: one that works in this process, or one that waits for a machine of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.budget import Budget, ParentBudget
from agent.errors import UsageError
from agent.settings import Settings
from benchmarks.batch.runner import Solve, Take, in_order

__all__ = ["Executor", "Offer", "RayOptions", "executor"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An executor that is ready."""

    solve: Solve
    room: int
    """How many instances fit at the same time, if the user does not say."""
    take: Take = in_order
    """Chooses the next instance."""


Executor = Callable[[Path, Budget, Callable[[ParentBudget], Solve]], AbstractContextManager[Offer]]
"""Makes an offer from the batch's folder, the limits of all instances together, and a function that makes a `Solve` of
this process."""


@dataclass(frozen=True, slots=True)
class RayOptions:
    """The options of the command line that only Ray has."""

    address: str = ""
    resources: str = ""
    environment: Sequence[str] = ()


def executor(name: str, given: RayOptions, source: str, *, reveal: bool, settings: Settings) -> Executor:
    """The executor of that name.

    Raises:
        UsageError: there is none, or it cannot do what the options say.
    """
    if name == "ray":
        return _ray(given, source, reveal=reveal, settings=settings)
    if name != "local":
        raise UsageError(f"unknown executor {name!r}: local or ray")
    if given != RayOptions():
        raise UsageError(
            "--ray-address, --ray-resources and --ray-env are for --executor ray; name it, or leave them out"
        )
    return _local


@contextmanager
def _local(out: Path, total: Budget, make: Callable[[ParentBudget], Solve]) -> Iterator[Offer]:
    yield Offer(make(total), 1)


def _ray(given: RayOptions, source: str, *, reveal: bool, settings: Settings) -> Executor:
    from benchmarks.batch.cluster import requests
    from benchmarks.batch.cluster.ray_backend import Cluster, on_ray
    from benchmarks.batch.cluster.task import Order

    if settings.memory.path and settings.memory.enabled:
        raise UsageError("a memory is a file of one machine: run with --executor local, or -c memory.enabled=false")
    cluster = Cluster(given.address or "auto", requests.read(given.resources), given.environment)
    order = Order(source, reveal, settings)

    @contextmanager
    def ready(out: Path, total: Budget, make: Callable[[ParentBudget], Solve]) -> Iterator[Offer]:
        with on_ray(cluster, order, out, total, make) as (solve, room, take):
            yield Offer(solve, room, take)

    return ready
