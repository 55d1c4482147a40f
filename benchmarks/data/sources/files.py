"""Rows of files: JSON lines, a JSON array, Parquet, Arrow as `datasets` saves it; of a folder, with a file a split."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from agent.errors import UsageError
from benchmarks.data.sources import programs
from benchmarks.data.sources.columns import Row

__all__ = ["SUFFIXES", "USUAL", "called", "data_files", "of_split", "read_rows"]

SUFFIXES = (".jsonl", ".json", ".parquet", ".arrow")
USUAL = ("test", "train")
"""The splits that are taken when none is named, the first that there is."""
_PART = re.compile(r"-\d+-of-\d+.*")
_ABOUT = ("dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json")


def read_rows(files: Iterable[Path]) -> Iterator[Row | ValueError]:
    """The rows of these files, in their order; in the place of one that cannot be read, why.

    Raises:
        UsageError: a file holds no rows, or its format cannot be read here.
    """
    for file in files:
        folder = programs.folder_beside(file)
        for row in _rows_of(file):
            yield row if folder is None or isinstance(row, ValueError) else programs.with_programs(row, folder)


def _rows_of(file: Path) -> Iterable[Row | ValueError]:
    if file.suffix == ".jsonl":
        return _lines(file)
    if file.suffix == ".json":
        return _array(file)
    if file.suffix in (".parquet", ".arrow"):
        return _table(file)
    raise UsageError(f"{file} is no table of instances; give a file that ends with {', '.join(SUFFIXES)}")


def _lines(file: Path) -> Iterator[Row | ValueError]:
    try:
        with file.open("rb") as lines:
            yield from (_object(line, number) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _object(line: bytes, number: int) -> Row | ValueError:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return ValueError(f"line {number} is not JSON: {error}")
    return row if isinstance(row, dict) else ValueError(f"line {number} is not a JSON object")


def data_files(folder: Path) -> list[Path]:
    """The files of a folder, and of those in it, that may hold rows; sorted."""
    found = (path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}"))
    return sorted(path for path in found if path.is_file() and not _about(path))


def _about(path: Path) -> bool:
    """Whether a file of a set holds none of its rows."""
    return path.name in _ABOUT or (path.suffix == ".arrow" and path.name.startswith("cache-"))


def of_split(folder: Path, files: Sequence[Path], split: str, name: str) -> list[Path]:
    """Those of the files that are of a split: it is a word of the path (`data/test-00000-of-00001.parquet`).

    Without a `split`, the only one, else `test`, else `train`.

    Raises:
        UsageError: there is no such split, or which one is meant is not clear.
    """
    for wanted in (split,) if split else USUAL:
        if found := called(folder, files, wanted):
            return found
    there = ", ".join(path.relative_to(folder).as_posix() for path in files) or "no files with rows"
    if split or len({(_whole(path), path.suffix) for path in files}) != 1:
        asked = f"no split {split!r}" if split else "several files, and none of a split called test or train"
        raise UsageError(f"{name} has {asked} but {there}; name the split: {name.partition(':')[0]}:SPLIT")
    return list(files)


def called(folder: Path, files: Iterable[Path], split: str) -> list[Path]:
    """Those of the files that a word of their path says are of the split."""
    return [path for path in files if split in _whole(path.relative_to(folder)).parts]


def _whole(path: PurePath) -> PurePath:
    """What a file is a part of: `data/dev` of `data/dev-00000-of-00002.parquet`."""
    return path.with_name(_PART.sub("", path.stem))


def _array(file: Path) -> Iterator[Row | ValueError]:
    try:
        rows = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read instances from {file}: {error}") from error
    if not isinstance(rows, list):
        raise UsageError(f"{file} is not a JSON array of objects, an instance each")
    yield from (row if isinstance(row, dict) else ValueError("it is not a JSON object") for row in rows)


def _table(file: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException
    except ModuleNotFoundError as error:
        raise UsageError(f"{file.name} needs pyarrow to be read: pip install 'ramify[bench]'") from error
    try:
        for batch in _batches(file):
            # dates, which JSON does not have, become text
            yield from json.loads(json.dumps(batch.to_pylist(), default=str))
    except (OSError, ArrowException) as error:
        raise UsageError(f"cannot read instances from {file}: {error}") from error


def _batches(file: Path) -> Iterator[Any]:
    """Some rows at a time, as pyarrow has them."""
    if file.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(file) as table:
            yield from table.iter_batches(batch_size=64)
        return
    from pyarrow.ipc import open_stream

    with file.open("rb") as data, open_stream(data) as stream:
        for batch in stream:
            yield from (batch.slice(first, 64) for first in range(0, batch.num_rows, 64))
