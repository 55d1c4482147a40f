"""`ramify bench run`: start or resume a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Instructions, Rollouts, Rounds
from benchmarks.cli.options import (
    Config,
    Executor,
    Filter,
    Ids,
    Image,
    RayAddress,
    RayEnv,
    RayResources,
    Sandbox,
    Shuffle,
    Slice,
    SourceName,
    say,
    split,
)

if TYPE_CHECKING:
    from agent.budget import Budget
    from agent.settings import Settings
    from benchmarks.batch import executors
    from benchmarks.batch.batch import Batch, Identity
    from benchmarks.batch.runner import Observer
    from benchmarks.data.instances import Instance, Mode
    from benchmarks.data.sources import Source

__all__ = ["run"]


@dataclass(frozen=True, slots=True)
class Room:
    """What a batch may do to disks."""

    min_free_gib: float
    prune_images: bool


def run(
    source: SourceName,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Batch directory; an existing batch is resumed.")],
    reveal_tests: Annotated[
        bool, typer.Option("--reveal-tests", help="CI mode: the solver sees the failing tests, as on a red build.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Instances at the same time. Default: 1; with Ray, all that fit."),
    ] = None,
    executor: Executor = "local",
    ray_address: RayAddress = "",
    ray_resources: RayResources = "",
    ray_env: RayEnv = None,
    ids: Ids = None,
    pattern: Filter = "",
    part: Slice = "",
    shuffle: Shuffle = False,
    policy: Annotated[str | None, typer.Option(metavar="mutate|MODEL", help="Who proposes the edits.")] = None,
    search: Annotated[str | None, typer.Option(metavar="NAME", help="Which state to go on from.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="tests|judge|debate|checklist|blend", help="What a state is worth.")
    ] = None,
    rollouts: Rollouts = None,
    rounds: Rounds = None,
    seed: Annotated[int | None, typer.Option(metavar="N")] = None,
    sandbox: Sandbox = None,
    image: Image = None,
    paranoid: Annotated[
        bool, typer.Option("--paranoid", help="Compare every fork with its snapshot, and stop if they differ.")
    ] = False,
    instructions: Instructions = None,
    config: Config = None,
    model_price: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT[,CACHED]", help="Dollars per million tokens, for models without a listed price."),
    ] = None,
    max_nodes: Annotated[int | None, typer.Option(metavar="N", help="The most states, per instance.")] = None,
    max_usd: Annotated[float | None, typer.Option(metavar="N", help="The most dollars, per instance.")] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="The most tokens, per instance.")] = None,
    max_seconds: Annotated[float | None, typer.Option(metavar="N", help="The most seconds, per instance.")] = None,
    min_free: Annotated[
        float, typer.Option(metavar="GIB", min=0, help="With less free on a disk that is used, nothing is begun.")
    ] = 2.0,
    prune_images: Annotated[
        bool, typer.Option("--prune-images", help="Remove each image that was pulled for the batch after its last use.")
    ] = False,
    total_usd: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="The most dollars, for all instances.")
    ] = None,
    total_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The most tokens, for all instances.")
    ] = None,
    total_calls: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The most model calls, for all instances.")
    ] = None,
    total_measurements: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The most test runs, for all instances.")
    ] = None,
    total_seconds: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="The most seconds from now on, for all instances.")
    ] = None,
) -> None:
    """Solve the instances of SOURCE. Finished instances are not repeated; those that failed for outside reasons are."""
    from agent.budget import Budget
    from agent.config import given
    from agent.errors import UsageError
    from agent.models.prices import dollars
    from benchmarks.batch import executors
    from benchmarks.data.instances import select
    from benchmarks.data.sources import open_source

    flags = {
        "policy.name": policy,
        "search.name": search,
        "value.name": value,
        "rollouts": rollouts,
        "rounds": rounds,
        "seed": seed,
        "sandbox.kind": sandbox,
        "sandbox.image": image,
        "sandbox.paranoid": paranoid or None,
        "instructions": instructions and str(instructions),
        "model.price": model_price and dollars(model_price),
        "budget.max_nodes": max_nodes,
        "budget.max_usd": max_usd,
        "budget.max_tokens": max_tokens,
        "budget.max_seconds": max_seconds,
    }
    opened = open_source(source, out.absolute() / ".clones", reveal=reveal_tests)
    total = Budget(
        max_usd=total_usd,
        max_tokens=total_tokens,
        max_calls=total_calls,
        max_measurements=total_measurements,
        max_seconds=total_seconds,
    )
    settings = given(config or (), flags)
    given_ray = executors.RayOptions(ray_address, ray_resources, tuple(ray_env or ()))
    where = executors.executor(executor, given_ray, source, reveal=reveal_tests, settings=settings)
    if executor == "ray" and prune_images:
        raise UsageError("--prune-images is for --executor local: images of a cluster are on its machines")
    every, suite = _read(opened)
    for each in every:
        if each.fault:
            say(f"{each.fault}; continuing with the others")
    order = settings.seed if shuffle else None
    chosen = select(every, ids=split(ids), pattern=pattern, part=part, shuffle=order)
    if order is None:
        chosen = _by_image(chosen, settings)
    identity = _identity(source, suite, chosen[0].mode, settings)
    room = Room(min_free, prune_images)
    known = workers or (1 if executor == "local" else None)
    raise typer.Exit(_run(out.absolute(), identity, opened, chosen, settings, known, total, where, room))


def _by_image(chosen: list[Instance], settings: Settings) -> list[Instance]:
    """The instances in the order that pulls the least."""
    from benchmarks.batch.grouping import in_groups
    from benchmarks.batch.sandbox_choice import fitted

    return in_groups(chosen, {each.id: fitted(each.task, settings).workspace.image for each in chosen})


def _run(
    out: Path,
    identity: Identity,
    source: Source,
    chosen: list[Instance],
    settings: Settings,
    workers: int | None,
    total: Budget,
    executor: executors.Executor,
    room: Room,
) -> int:
    """Fill a batch; the exit code: 0 when every instance came to an end, 1 when some did not, 130 on a signal."""
    from agent.analysis.report.summary import cost
    from benchmarks.batch.batch import Batch
    from benchmarks.batch.measured_times import Recorder
    from benchmarks.batch.runner import solver_of
    from benchmarks.batch.sandbox_choice import fitted

    images = {each.id: fitted(each.task, settings).workspace.image for each in chosen}
    lacking = _floor(room, out, images.values(), settings)
    batch = Batch(out, identity)
    try:
        todo = batch.left(chosen)
        _say_what_comes(batch, chosen, todo, settings, total, workers)
        ready = executor(out, total, partial(solver_of, source, settings))
        with _pruning(room, batch, images, todo) as others:
            watching = (Recorder(batch, chosen), *others)
            halted, stopped = _filled(batch, todo, ready, workers, watching, lacking)
        left = len(batch.left(chosen))
    finally:
        batch.close()
    if halted:
        say(f"nothing more was begun: {halted}; so far {total.spent.measurements} test runs{cost(total.spent)}")
    if left:
        say(f"{left} of {len(chosen)} are still to do; the same command{' then' if halted else ''} goes on")
    return 130 if stopped else int(left > 0)


def _floor(room: Room, out: Path, images: Iterable[str | None], settings: Settings) -> Callable[[], str]:
    """What says that too little is free on a disk. Raises sandboxes.StoreFull where that is so already."""
    from benchmarks.batch.free_space import GIB, Floor, places

    floor = Floor(places(out, images, settings.sandbox.kind), int(room.min_free_gib * GIB))
    floor.require()
    return floor.shortage


def _say_what_comes(
    batch: Batch, chosen: list[Instance], todo: list[Instance], settings: Settings, total: Budget, workers: int | None
) -> None:
    """What is to do and may come to, on stderr; what earlier sessions spent counts from now on."""
    from benchmarks.batch.cost_forecast import forecast, spent_so_far
    from benchmarks.batch.measured_times import measured_file, outlook, read_measured

    of = batch.identity
    say(f"{len(todo)} of {len(chosen)} instances to do, {of.mode} tests, {of.model}, suite {of.suite}")
    total.start(spent=spent_so_far(batch, chosen), nodes=0, elapsed_s=0)
    expected = outlook(todo, of, read_measured(measured_file()), workers)
    for line in (*forecast(todo, batch.attempts.values(), settings, total), *expected):
        say(line)


def _filled(
    batch: Batch,
    todo: list[Instance],
    ready: AbstractContextManager[executors.Offer],
    workers: int | None,
    others: tuple[Observer, ...],
    lacking: Callable[[], str],
) -> tuple[str, bool]:
    """Attempt what is to do; why nothing more was begun, and whether a signal came."""
    from benchmarks.batch.progress import BatchProgress
    from benchmarks.batch.runner import Observers, run_batch, stop_on_signals

    shown = BatchProgress(len(todo), batch.identity.mode)
    with ready as offer, stop_on_signals() as brakes, shown as progress:
        halted = run_batch(
            batch, todo, offer.solve, workers=workers or offer.room, brakes=brakes,
            observer=Observers((progress, *others)), lacking=lacking, take=offer.take,
        )  # fmt: skip
    return halted, brakes.drain.is_set()


@contextmanager
def _pruning(
    room: Room, batch: Batch, images: Mapping[str, str | None], todo: list[Instance]
) -> Iterator[tuple[Observer, ...]]:
    """Who removes images while the block runs, if that is wanted and there are any."""
    from sandboxes.docker.client import connect

    named = {name: image for name, image in images.items() if image is not None}
    if not (room.prune_images and named):
        yield ()
        return
    from benchmarks.batch.grouping import environment_of
    from benchmarks.batch.image_cleanup import Pruner

    with closing(connect()) as client:
        environments = {each.id: environment_of(each, images[each.id]) for each in todo}
        yield (Pruner(client, batch.out, named, environments),)


def _read(source: Source) -> tuple[list[Instance], str]:
    """All instances, without what only grading needs, which is most of a set, and what they are together."""
    from benchmarks.data.suites import suite_id

    kept: list[Instance] = []

    def whole() -> Iterator[Instance]:
        for each in source.instances():
            kept.append(each.to_solve())
            yield each

    suite = suite_id(whole())
    return kept, suite


def _identity(source: str, suite: str, mode: Mode, settings: Settings) -> Identity:
    """What the batch is of."""
    from benchmarks.batch.batch import Identity, settings_digest
    from benchmarks.data.sources import in_full

    model, digest = _model_name(settings, mode), settings_digest(settings)
    return Identity(in_full(source), mode, model, digest, settings.seed, suite)


def _model_name(settings: Settings, mode: Mode) -> str:
    """What predictions are filed under; revealed ones say so, so that no table can mix them with others."""
    value = "" if settings.value.name == "tests" else f"/{settings.value.name}"
    revealed = "+revealed-tests" if mode == "revealed" else ""
    return f"ramify/{settings.policy.name}/{settings.search.name}{value}{revealed}"
