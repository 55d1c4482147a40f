"""`ramify bench run`: start or resume a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.counting import counted, first_of
from agent.errors import UsageError
from benchmarks.cli.options import (
    Executor,
    Filter,
    Ids,
    RayAddress,
    RayEnv,
    RayResources,
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
    from benchmarks.batch.runner import Observer, Offer
    from benchmarks.data.instances import Instance, Mode
    from benchmarks.data.sources import Source


@dataclass(frozen=True, slots=True)
class Room:
    """The images of a batch, and its settings for disk space."""

    images: Mapping[str, str | None]
    """By instance id."""
    min_free_gib: float
    prune_images: bool


def run(
    context: typer.Context,
    source: SourceName,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Batch directory; an existing batch is resumed.")
    ],
    reveal_tests: Annotated[
        bool, typer.Option("--reveal-tests", help="CI mode: the solver sees the failing tests, as on a red build.")
    ] = False,
    at_once: Annotated[
        int | None,
        typer.Option(
            "-w",
            "--workers",
            metavar="N",
            min=1,
            help="Instances at the same time. Default: 1; with Ray, all that fit.",
        ),
    ] = None,
    executor: Executor = "local",
    ray_address: RayAddress = "",
    ray_resources: RayResources = "",
    ray_env: RayEnv = None,
    ids: Ids = None,
    pattern: Filter = "",
    part: Slice = "",
    shuffle: Shuffle = False,
    model: options.Models = None,
    effort: options.EffortName = None,
    recipe: options.Recipe = None,
    search: options.SearchName = None,
    value: options.ValueName = None,
    rollouts: options.Rollouts = None,
    rounds: options.Rounds = None,
    seed: options.Seed = None,
    sandbox: options.SandboxKind = None,
    image: options.Image = None,
    paranoid: options.Paranoid = False,
    instructions: options.Instructions = None,
    config: options.Config = None,
    model_price: options.ModelPrice = None,
    max_nodes: Annotated[
        int | None,
        typer.Option("--max-states", "--max-nodes", metavar="N", help="Maximum number of states per instance."),
    ] = None,
    max_usd: Annotated[
        float | None,
        typer.Option("-l", "--max-usd", "--cost-limit", metavar="N", help="Maximum number of dollars per instance."),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(metavar="N", help="Maximum number of tokens per instance.")] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Time limit per instance in seconds: no new step begins after it; verification takes longer.",
        ),
    ] = None,
    min_free: Annotated[
        float,
        typer.Option(metavar="GIB", min=0, help="Start no instance while a disk in use has less free space than this."),
    ] = 2.0,
    prune_images: Annotated[
        bool, typer.Option("--prune-images", help="Remove each image that was pulled for the batch after its last use.")
    ] = False,
    total_usd: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="Maximum number of dollars for all instances.")
    ] = None,
    total_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Maximum number of tokens for all instances.")
    ] = None,
    total_calls: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Maximum number of model calls for all instances.")
    ] = None,
    total_measurements: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Maximum number of test runs for all instances.")
    ] = None,
    total_seconds: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="Time limit for all instances, in seconds from now on.")
    ] = None,
) -> None:
    """Solve the instances of SOURCE. Finished instances are skipped; infrastructure failures are retried."""
    from agent.budget import Budget
    from agent.build.composition import check, require_prices
    from benchmarks.batch import executors
    from benchmarks.batch.cluster import requests
    from benchmarks.batch.grouping import in_groups
    from benchmarks.batch.sandbox_choice import fitted
    from benchmarks.data.instances import select
    from benchmarks.data.sources import open_source

    opened = open_source(source, out.absolute() / ".clones", reveal=reveal_tests)
    total = Budget(
        max_usd=total_usd,
        max_tokens=total_tokens,
        max_calls=total_calls,
        max_measurements=total_measurements,
        max_seconds=total_seconds,
    )
    settings = options.settings_of(context.params)
    cluster = requests.Cluster(ray_address or "auto", requests.read(ray_resources), tuple(ray_env or ()))
    where = executors.executor(executor, cluster, source, reveal=reveal_tests, settings=settings)
    if executor == "ray" and prune_images:
        raise UsageError("--prune-images is for --executor local: the images of a cluster are on its machines")
    if executor == "local":  # the workers of a cluster may have keys of their own
        check(settings)
    require_prices(settings, total_usd)
    instances, suite = _read(opened)
    order = settings.seed if shuffle else None
    chosen = select(instances, ids=split(ids), pattern=pattern, part=part, shuffle=order)
    _require_usable(chosen)
    images = {instance.id: fitted(instance.task, settings).workspace.image for instance in chosen}
    room = Room(images, min_free, prune_images)
    if order is None:
        chosen = in_groups(chosen, images)
    identity = _identity(source, suite, chosen[0].mode, settings)
    count = at_once or (1 if executor == "local" else None)
    raise typer.Exit(_run(out.absolute(), identity, opened, chosen, settings, count, total, where, room))


def _require_usable(chosen: list[Instance]) -> None:
    """Raise UsageError if a row of the instances cannot be used, so that no instance is silently left out of a long
    batch."""
    faults = [instance.fault for instance in chosen if instance.fault]
    if faults:
        others = f" ({counted(len(faults) - 1, 'other row')} too; `ramify bench check` names all)" if faults[1:] else ""
        raise UsageError(f"{faults[0]}{others}; correct it, or choose the others with --ids, --filter or --slice")


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
    """Run a batch. Returns the exit code: 0 if every instance ended, 1 if some did not or are broken, 130 after a
    signal."""
    from agent.analysis.report.summary import cost
    from benchmarks.batch.batch import Batch
    from benchmarks.batch.measured_times import Recorder
    from benchmarks.batch.runner import solver_of

    lacking = _lacking(room, out, settings)
    batch = Batch(out, identity)
    try:
        batch.plan(chosen)
        todo = [instance for instance in batch.left(chosen) if not _still_broken(batch, instance, source)]
        _announce(batch, chosen, todo, settings, total, workers)
        ready = executor(out, total, partial(solver_of, source, settings))
        with _pruning(room, batch, todo) as others:
            observers = (Recorder(batch, chosen), *others)
            halted, stopped = _solve(batch, todo, ready, workers, observers, lacking)
        broken = [instance.id for instance in chosen if batch.broken(instance)]
        left = len(batch.left(chosen)) - len(broken)
    finally:
        batch.close()
    if halted:
        spent = counted(total.spent.measurements, "test run") + cost(total.spent)
        say(f"no more instances were started: {halted}; so far {spent}")
    if left:
        then = " then" if halted else ""
        say(f"{left} of {counted(len(chosen), 'instance')} still to do; the same command{then} continues")
    if broken:
        say(
            f"{counted(len(broken), 'instance is', 'instances are')} broken ({first_of(broken, 5)}): provide what is "
            "missing, and run the same command again to solve them"
        )
    if not left:
        say(f"next: ramify bench grade {out}")
    return 130 if stopped else int(left > 0 or bool(broken))


def _still_broken(batch: Batch, instance: Instance, source: Source) -> bool:
    """Whether the instance was broken in an earlier session and still is: its checkout cannot be made now either."""
    from benchmarks.data.instances import InstanceBroken

    if batch.broken(instance):
        try:
            source.prepare(instance)
        except InstanceBroken as error:
            say(f"{instance.id} is still broken: {error}")
            return True
    return False


def _lacking(room: Room, out: Path, settings: Settings) -> Callable[[], str]:
    """Return a function that says which disk has too little free space. Raises sandboxes.StoreFull if one is already
    too full."""
    from benchmarks.batch.free_space import output_folders, shortage
    from sandboxes import StoreFull

    lacking = partial(shortage, output_folders(out, room.images.values(), settings.sandbox.kind), room.min_free_gib)
    if now := lacking():
        raise StoreFull(now)
    return lacking


def _announce(
    batch: Batch, chosen: list[Instance], todo: list[Instance], settings: Settings, total: Budget, workers: int | None
) -> None:
    """Print how many instances are to be done and what they may cost, and count what earlier sessions spent in the
    budget."""
    from benchmarks.batch.cost_forecast import forecast, spent_so_far
    from benchmarks.batch.measured_times import measured_file, outlook, read_measured

    identity = batch.identity
    suite = f"{identity.mode} tests, {identity.model}, suite {identity.suite}"
    say(f"{len(todo)} of {counted(len(chosen), 'instance')} to do, {suite}")
    total.start(spent=spent_so_far(batch, chosen), nodes=0, elapsed_s=0)
    rows, limit_s = read_measured(measured_file()), settings.budget.max_seconds
    expected = outlook(todo, identity, rows, workers, limit_s)
    for line in (*forecast(todo, batch.attempts.values(), settings, total), *expected):
        say(line)


def _solve(
    batch: Batch,
    todo: list[Instance],
    ready: AbstractContextManager[Offer],
    workers: int | None,
    observers: tuple[Observer, ...],
    lacking: Callable[[], str],
) -> tuple[str, bool]:
    """Attempt the instances. Returns why no more were started (empty: all were), and whether a signal came."""
    from benchmarks.batch.progress import BatchProgress
    from benchmarks.batch.runner import run_batch, stop_on_signals

    shown = BatchProgress(len(todo), batch.identity.mode)
    with ready as offer, stop_on_signals() as stopping, shown as progress:
        halted = run_batch(
            batch, todo, offer.solve, workers=workers or offer.room, stopping=stopping,
            observers=(progress, *observers), lacking=lacking, take=offer.take,
        )  # fmt: skip
    return halted, stopping.drain.is_set()


@contextmanager
def _pruning(room: Room, batch: Batch, todo: list[Instance]) -> Iterator[tuple[Observer, ...]]:
    """Yield the observer that removes images while the block runs, if --prune-images is set and there are images."""
    from sandboxes.docker.client import connect

    named = {name: image for name, image in room.images.items() if image is not None}
    if not (room.prune_images and named):
        yield ()
        return
    from benchmarks.batch.grouping import environment_of
    from benchmarks.batch.image_cleanup import Pruner

    with closing(connect()) as client:
        environments = {instance.id: environment_of(instance, room.images[instance.id]) for instance in todo}
        yield (Pruner(client, batch.out, named, environments),)


def _read(source: Source) -> tuple[list[Instance], str]:
    """The instances without the data that only grading needs (which is most of a set), and the id of the suite."""
    from benchmarks.data.suites import suite_id

    to_solve: list[Instance] = []

    def instances() -> Iterator[Instance]:
        for instance in source.instances():
            to_solve.append(instance.to_solve())
            yield instance

    suite = suite_id(instances())
    return to_solve, suite


def _identity(source: str, suite: str, mode: Mode, settings: Settings) -> Identity:
    from benchmarks.batch.batch import Identity
    from benchmarks.data.sources import in_full

    return Identity.of(in_full(source), mode, _model_name(settings, mode), suite, settings)


def _model_name(settings: Settings, mode: Mode) -> str:
    """The model name of the predictions. It tells if tests were revealed, so that no table mixes those results with
    others."""
    value = "" if settings.value.name == "tests" else f"/{settings.value.name}"
    revealed = "+revealed-tests" if mode == "revealed" else ""
    return f"ramify/{settings.policy.name}/{settings.search.name}{value}{revealed}"
