"""Sources of instances: one adapter for each format of sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

from agent.errors import UsageError
from benchmarks.data.instances import Instance

__all__ = ["Source", "in_full", "open_source", "parted"]

_ON_THE_HUB = re.compile(r"[\w.-]+/[\w.-]+")


class Source(Protocol):
    """A set of instances."""

    def instances(self) -> Iterator[Instance]:
        """Return all instances, in the order of the set. Nothing is written to disk."""
        ...

    def prepare(self, instance: Instance) -> None:
        """Make the checkout that `instance.task.workspace` names, and replace anything that is there.

        Raises:
            InstanceBroken: the set is inconsistent.
        """
        ...


def open_source(name: str, work: Path, *, reveal: bool = False) -> Source:
    """Open a source by name: a file or folder, or a set of the Hugging Face hub (`owner/name`); `:PART` after it
    selects a split, or a level of RefactorBench. Checkouts are made below `work`.

    Raises:
        UsageError: there is no such source.
    """
    place, part = parted(name)
    path = Path(place)
    if path.is_dir():
        return _of_folder(path, part, work, reveal=reveal)
    if path.is_file():
        _refuse_part(path, part)
        return _of_file(path, work, reveal=reveal)
    if _ON_THE_HUB.fullmatch(place):
        from benchmarks.data.sources.hub import dataset_files
        from benchmarks.data.sources.table import Table

        return Table(name, partial(dataset_files, place, part), reveal)
    raise UsageError(
        f"{name} is neither a file or folder of instances nor a set of the Hugging Face hub (owner/name or "
        "owner/name:split)"
    )


def in_full(name: str) -> str:
    """The name of a source for use from any folder: the absolute path, or the name of a set of the hub as it is."""
    place, _ = parted(name)
    return str(Path(name).resolve()) if Path(place).exists() else name


def parted(name: str) -> tuple[str, str]:
    """Split a name at its last colon into the source and its part, which is empty if there is none."""
    place, _, part = name.rpartition(":")
    return (place, part) if place and not Path(name).exists() else (name, "")


def _refuse_part(path: Path, part: str) -> None:
    if part:
        raise UsageError(f"{path} has no splits or levels, so none is called {part!r}")


def _of_folder(folder: Path, part: str, work: Path, *, reveal: bool) -> Source:
    from benchmarks.data.sources import files
    from benchmarks.data.sources.refactorbench import LEVELS, RefactorBench
    from benchmarks.data.sources.table import Table

    if (undivided := _undivided(folder, work, reveal=reveal)) is not None:
        _refuse_part(folder, part)
        return undivided
    if RefactorBench.fits(folder):
        return RefactorBench(folder, work, part or LEVELS[0], reveal)
    data_files = files.data_files(folder)
    if not data_files:
        raise UsageError(
            f"{folder} holds no instances: no instances.jsonl, no {' or '.join(files.SUFFIXES)} file, no Harbor task "
            "and no programs like those of QuixBugs or RefactorBench"
        )
    return Table(str(folder), partial(files.of_split, folder, data_files, part, f"{folder}:{part}"), reveal)


def _undivided(folder: Path, work: Path, *, reveal: bool) -> Source | None:
    """The source of a folder in a format without splits or levels; None for other folders."""
    from benchmarks.data.sources.harbor import Harbor
    from benchmarks.data.sources.quixbugs import QuixBugs

    if (folder / "instances.jsonl").is_file():
        return _of_file(folder / "instances.jsonl", work, reveal=reveal)
    if Harbor.fits(folder):
        return Harbor(folder, reveal)
    return QuixBugs(folder, work) if QuixBugs.fits(folder) else None


def _of_file(file: Path, work: Path, *, reveal: bool) -> Source:
    """The source of a file. The first row that can be read tells whether the checkouts are bundles beside the file or
    are in images."""
    from benchmarks.data.sources.bundles import Bundles
    from benchmarks.data.sources.files import read_rows
    from benchmarks.data.sources.table import Table

    rows = (row for _, row in read_rows([file]) if not isinstance(row, ValueError))
    if "bundle" in next(rows, {}):
        return Bundles(file, work, reveal=reveal)
    return Table(str(file), lambda: [file], reveal)
