"""Finds what earlier runs left on this machine, as far as it can be removed. Journals and patches are always kept."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import typer

from agent.counting import counted, first_of
from agent.errors import JournalError, UsageError
from agent.run.paths import STORE, known_runs
from agent.run.run import Run
from sandboxes import SandboxError
from sandboxes.cleanup import Leftover
from sandboxes.docker import client as engine
from sandboxes.docker import provider as docker
from sandboxes.forking.disk_space import weigh
from sandboxes.namespace import cgroups
from sandboxes.namespace import provider as namespace

log = logging.getLogger(__name__)

SHOWN = 5
"""The maximum number of runs in a message."""
HOUR_S = 3600.0
UNUSED_S = 30 * 24 * HOUR_S
"""Environments and set-ups that were not used for this long are removed; they are rebuilt when needed."""
OLD_S = 7 * 24 * HOUR_S
"""The age at which things are removed that can be rebuilt, or that belong to other machines."""


def leftovers(
    *, states: bool = False, environments: bool = False, all_users: bool = False, ask: bool = False
) -> Iterator[Leftover]:
    """Yield what can be removed; decide about each item before asking for the next. Always included: containers and
    control groups whose process is gone, states of deleted runs, and things that can be rebuilt and were not used for
    long.

    `states`: also the states of runs that have ended; such a run cannot be resumed afterwards.
    `environments`: also environments and set-ups that no run's states need and that were not used (images: built) in
    the last hour.
    `all_users`: also what other users and state directories left here, and what all users of an engine share.
    `ask`: ask the user first if the states of runs that can be resumed would be included.

    Raises:
        agent.errors.UsageError: stdin is not a terminal, so the user cannot be asked.
        typer.Abort: the user answered no.
    """
    on_engine = tuple(_on_engine(states, HOUR_S if environments else OLD_S, all_users))
    if states and ask:
        _confirm({*_stores_of_ended_runs(), *(left.store for left in on_engine if left.store)})
    yield from cgroups.leftovers(all_users=all_users)
    if states:
        for store in _stores_of_ended_runs():
            yield Leftover("states", weigh(store), partial(_remove, store), store)
    yield from on_engine
    areas = (namespace.shared_leftovers, *((docker.shared_leftovers,) if all_users else ()))
    for area in areas:
        try:
            yield from area(HOUR_S if environments else UNUSED_S)
        except SandboxError as error:
            log.info("skipping one kind of leftovers: %s", error)


def _confirm(stores: Iterable[Path]) -> None:
    """Ask the user before the states of runs that can be resumed are removed."""
    runs = [run for run in sorted({store.parent for store in stores}) if resumable(run)]
    if not runs:
        return
    these = counted(len(runs), "run")
    if not sys.stdin.isatty():
        raise UsageError(
            f"this would remove the states of {these} that can be resumed ({first_of([*map(str, runs)], SHOWN)}); "
            "confirm with --yes"
        )
    sys.stderr.writelines(f"{run} can be resumed\n" for run in runs)
    typer.confirm(f"Remove the states of {these} that can be resumed?", abort=True, err=True)


def resumable(run: Path) -> bool:
    """Whether the search of a run is not over."""
    if not (run / "journal.jsonl").exists():
        return False
    with Run.read(run) as read:
        return not read.finished


def _stores_of_ended_runs() -> Iterator[Path]:
    for run in sorted(known_runs()):
        store = run / STORE
        if store.is_dir() and not _is_reference(store) and _ended(run):
            yield store


def kept_states() -> tuple[int, int]:
    """Return how many runs have states that `--states` would remove, and their size in bytes. States that a container
    engine keeps are not counted."""
    sizes = [weigh(store) for store in _stores_of_ended_runs()]
    return len(sizes), sum(sizes)


def _is_reference(store: Path) -> bool:
    """Whether the store only refers to states that the engine keeps."""
    return (store / "volume").exists() or (store / "commit").exists()


def _ended(run: Path) -> bool:
    """Whether a run has ended and no process has it open."""
    try:
        with Run.open(run) as opened:
            return opened.ended is not None
    except JournalError:
        return False


def _remove(store: Path) -> bool:
    shutil.rmtree(store, ignore_errors=True)
    return not store.exists()


def _on_engine(states: bool, built_before_s: float, all_users: bool) -> Iterator[Leftover]:
    def keep(store: Path) -> bool:
        run = store.parent
        ended = states and (run / "journal.jsonl").exists() and _ended(run)
        return store.is_dir() and not ended

    try:
        with closing(engine.connect()) as client, engine.translated():
            yield from engine.leftovers(client, keep, OLD_S, built_before_s, all_users=all_users)
    except SandboxError as error:
        log.info("skipping leftovers on the container engine: %s", error)
