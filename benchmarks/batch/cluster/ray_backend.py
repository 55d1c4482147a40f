"""The Ray side of a batch on a cluster: its tasks, its actor and its runtime environment."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from agent.budget import Budget, ParentBudget
from agent.errors import ConfigError, RamifyError, UsageError
from agent.run.paths import STORE
from agent.run.run import Run
from agent.solver.outcome import never_begun, result_of
from agent.solver.result import Result
from benchmarks.batch.cluster import requests
from benchmarks.batch.cluster.code_bundle import pack
from benchmarks.batch.cluster.coordinator import Ask, Coordinator
from benchmarks.batch.cluster.neighbours import Neighbours
from benchmarks.batch.cluster.remote_budget import RemoteBudget
from benchmarks.batch.cluster.task import WorkerJob, work
from benchmarks.batch.grouping import environment_of
from benchmarks.batch.runner import Offer, OnEvent, Solve
from benchmarks.batch.sandbox_choice import fitted
from benchmarks.data.instances import Instance

log = logging.getLogger(__name__)

CONNECT_S = 5.0
POLL_S = 1.0
"""Seconds between checks of a waiting thread whether the batch is stopping, and between its updates of the status."""
LOSSES = 1
"""How many times Ray restarts an instance after its machine or process was lost."""
_LIMITS = ("max_usd", "max_tokens", "max_calls", "max_measurements", "max_seconds")


class WorkersLost(RamifyError):
    """The machine or the process that worked on an instance was lost, and so was the next one."""


@contextmanager
def on_ray(
    cluster: requests.Cluster, job: WorkerJob, out: Path, total: Budget, make: Callable[[ParentBudget], Solve]
) -> Iterator[Offer]:
    """Yield what the cluster provides. `out` is the batch's folder. Runs in it that were started on this machine, which
    has their states, are resumed by the `Solve` that `make` returns. All usage is charged to `total`.

    Raises:
        ConfigError: Ray is not installed, no cluster answers, or this machine does not belong to it.
        UsageError: a variable that is to be passed to the workers is not set.
    """
    secrets = _secrets(cluster.environment)
    with tempfile.TemporaryDirectory(prefix="ramify-code-bundle-") as folder:
        job, environment = pack(job, out, Path(folder))
        ray = _connected(cluster.address, environment)
    try:
        coordinator = _coordinator(ray, out, {name: getattr(total, name) for name in _LIMITS})
        ask: Ask = partial(_ask, coordinator)
        if not ask("open", total.spent, total.elapsed_s, secrets):
            raise ConfigError(f"the Ray node on this machine cannot see {out}; {_ON_A_NODE}")
        options = {"max_retries": LOSSES, "retry_exceptions": False, **requests.options(cluster.resources)}
        run = ray.remote(**options)(_task)
        neighbours = Neighbours(partial(_environment, job), partial(ask, "machine"))
        here = make(RemoteBudget(ask, "", 0, time.monotonic() + total.left_s))
        submit = partial(_submitted, run, job, coordinator, neighbours)
        yield Offer(_solver(submit, ask, here), _capacity(ray, cluster.resources), neighbours.take)
        total.start(spent=ask("spent"), nodes=0, elapsed_s=total.elapsed_s)
    finally:
        ray.shutdown()


_ON_A_NODE = (
    "run the command on a machine of the cluster, for example with: ray job submit -- ramify bench run ... "
    "--executor ray"
)


def _secrets(names: Sequence[str]) -> dict[str, str]:
    if missing := [name for name in names if name not in os.environ]:
        raise UsageError(f"--ray-env {missing[0]}: no such variable is set here; export it, or leave the option out")
    return {name: os.environ[name] for name in names}


def _connected(address: str, environment: Mapping[str, Any]) -> Any:
    """Connect to the cluster and return the module `ray`.

    Raises:
        ConfigError: Ray is not installed, no cluster answers, or the cluster refuses this program.
    """
    if address.startswith("ray://"):
        raise ConfigError(f"--ray-address {address} is an address for Ray Client, which is not supported; {_ON_A_NODE}")
    _require_answer(address)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConfigError("--executor ray needs Ray: pip install 'ray[default]'") from error
    os.environ.setdefault("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1")  # bundles of instances are in many a .gitignore
    try:
        ray.init(address, runtime_env=dict(environment), log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        raise ConfigError(f"no Ray cluster answers at {address!r}; {_WITHOUT}") from error
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"the Ray cluster at {address!r} refuses this program: {error}") from error
    return ray


_WITHOUT = "start one with `ray start --head`, or name one with --ray-address HOST:PORT"


def _require_answer(address: str) -> None:
    """Raise ConfigError if nothing answers at a HOST:PORT: Ray itself would keep trying for minutes."""
    named = os.environ.get("RAY_ADDRESS", "auto") if address == "auto" else address
    host, _, port = named.rpartition(":")
    if named != "auto":
        try:
            socket.create_connection((host, int(port)), CONNECT_S).close()
        except (OSError, ValueError) as error:
            raise ConfigError(f"no Ray cluster answers at {named!r}; {_WITHOUT}") from error


def _coordinator(ray: Any, out: Path, limits: Mapping[str, float | None]) -> Any:
    """Start the coordinator as an actor on this machine, where the batch's folder is."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    beside = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(Coordinator).options(num_cpus=0, scheduling_strategy=beside).remote(out, limits)


def _environment(job: WorkerJob, instance: Instance) -> str:
    return environment_of(instance, fitted(instance.task, job.settings).workspace.image)


def _submitted(run: Any, job: WorkerJob, coordinator: Any, neighbours: Neighbours, instance: Instance) -> Any:
    """Submit the instance as a task, to its preferred machine if that has room."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    machine = neighbours.near(instance)
    near = machine and NodeAffinitySchedulingStrategy(machine, soft=True, _spill_on_unavailable=True)
    return run.options(scheduling_strategy=near or "SPREAD").remote(job, coordinator, instance.id)


def _ask(coordinator: Any, method: str, *arguments: Any) -> Any:
    import ray

    return ray.get(getattr(coordinator, method).remote(*arguments))


def _capacity(ray: Any, request: Mapping[str, float]) -> int:
    count = requests.capacity([node["Resources"] for node in ray.nodes() if node["Alive"]], request)
    if not count:
        resources = ", ".join(f"{name}={amount:g}" for name, amount in request.items())
        log.error("no machine of the cluster has %s for an instance now; waiting for one that has", resources)
    return max(1, count)


def _task(job: WorkerJob, coordinator: Any, name: str) -> Result:
    """Solve an instance on a machine of the cluster, as a task of Ray. The work is done in another thread: a task that
    waits for the coordinator in its main thread would give up its CPUs, and Ray cancels a task by raising
    KeyboardInterrupt in its main thread."""
    import ray

    _ask(coordinator, "moved", name, ray.get_runtime_context().get_node_id())
    cancel = threading.Event()
    with ThreadPoolExecutor(1, thread_name_prefix="instance") as pool:
        future = pool.submit(work, job, name, partial(_ask, coordinator), cancel)
        while True:
            try:
                return future.result()
            except KeyboardInterrupt:
                cancel.set()
            except SystemExit:
                cancel.set()
                raise


def _solver(submit: Callable[[Instance], Any], ask: Ask, here: Solve) -> Solve:
    def solve(instance: Instance, run_dir: Path, cancel: threading.Event, on_event: OnEvent) -> Result:
        if (run_dir / "journal.jsonl").is_file():
            return _ended(run_dir) or here(instance, run_dir, cancel, on_event)
        try:
            result = _result(submit(instance), cancel, lambda: on_event(ask("status", instance.id)))
        except WorkersLost:
            ask("abandon", instance.id)
            raise
        return replace(result, run_dir=run_dir) if result else never_begun(run_dir)

    return solve


def _ended(run_dir: Path) -> Result | None:
    """The result of a run that arrived from a worker (without states) but was not recorded before this program was
    killed; None for any other run."""
    with Run.read(run_dir) as run:
        return result_of(run, run.ended) if run.ended and not (run_dir / STORE).exists() else None


def _result(ref: Any, cancel: threading.Event, show_status: Callable[[], None]) -> Result | None:
    """Wait for the result of a task, and show its status meanwhile; None if it was cancelled before it started.

    Raises:
        WorkersLost: the machines or processes that worked on it were lost.
        ConfigError: the machines cannot receive the code or the instances.
    """
    import ray
    from ray import exceptions

    while not ray.wait([ref], timeout=POLL_S)[0]:
        if cancel.is_set():
            ray.cancel(ref)
            break
        show_status()
    else:
        show_status()  # what has changed since the last poll
    try:
        result: Result = ray.get(ref)
    except exceptions.TaskCancelledError:
        return None
    except exceptions.RayTaskError as error:
        raise error.cause from error
    except exceptions.RuntimeEnvSetupError as error:
        raise ConfigError(f"a machine of the cluster could not be set up: {error}") from error
    except exceptions.RayError as error:
        raise WorkersLost(f"{type(error).__name__}: {error}") from error
    return result
