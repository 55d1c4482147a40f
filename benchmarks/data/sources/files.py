"""Reads rows from files (JSON lines, a JSON array, Parquet, Arrow as `datasets` saves it) and finds the files of a
split in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from agent.errors import UsageError
from benchmarks.data.sources import programs
from benchmarks.data.sources.columns import Row

SUFFIXES = (".jsonl", ".json", ".parquet", ".arrow")
USUAL = ("test", "train")
"""The splits to try, in this order, if none is named."""
_PART = re.compile(r"-\d+-of-\d+.*")
_ABOUT = ("dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json")


def read_rows(files: Iterable[Path]) -> Iterator[tuple[str, Row | ValueError]]:
    """The rows of these files, in order, each with its place for messages; a row that cannot be read is replaced by the
    error.

    Raises:
        UsageError: a file is not a table of rows, or its format cannot be read here.
    """
    for file in files:
        folder = programs.folder_beside(file)
        for place, row in _rows_of(file):
            yield place, row if folder is None or isinstance(row, ValueError) else programs.with_programs(row, folder)


def _rows_of(file: Path) -> Iterator[tuple[str, Row | ValueError]]:
    if file.suffix == ".jsonl":
        return ((f"{file}:{number}", row) for number, row in _lines(file))
    if file.suffix == ".json":
        return ((f"{file}, row {number}", row) for number, row in enumerate(_array(file), 1))
    if file.suffix in (".parquet", ".arrow"):
        return ((f"{file}, row {number}", row) for number, row in enumerate(_table(file), 1))
    raise UsageError(f"{file} is not a table of instances; give a file that ends with {', '.join(SUFFIXES)}")


def _lines(file: Path) -> Iterator[tuple[int, Row | ValueError]]:
    try:
        with file.open("rb") as lines:
            yield from ((number, _object(line)) for number, line in enumerate(lines, 1) if line.strip())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _object(line: bytes) -> Row | ValueError:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return ValueError(f"the line is not JSON: {error}")
    return row if isinstance(row, dict) else ValueError("the line is not a JSON object")


def data_files(folder: Path) -> list[Path]:
    """The files below a folder that may hold rows, sorted."""
    paths = (path for suffix in SUFFIXES for path in folder.rglob(f"*{suffix}"))
    return sorted(path for path in paths if path.is_file() and not _is_metadata(path))


def _is_metadata(path: Path) -> bool:
    """Whether a file only describes or caches a set, and has none of its rows."""
    return path.name in _ABOUT or (path.suffix == ".arrow" and path.name.startswith("cache-"))


def of_split(folder: Path, files: Sequence[Path], split: str, name: str) -> list[Path]:
    """The files of a split, whose name is a part of their path (`data/test-00000-of-00001.parquet`).

    Without a `split`: `test`, else `train`, else the only one.

    Raises:
        UsageError: there is no such split, or none is named and there are several.
    """
    for candidate in (split,) if split else USUAL:
        if split_files := called(folder, files, candidate):
            return split_files
    present = ", ".join(path.relative_to(folder).as_posix() for path in files) or "no files with rows"
    if split or len({(_without_number(path), path.suffix) for path in files}) != 1:
        problem = f"no split {split!r}" if split else "several files, and none of a split called test or train"
        raise UsageError(f"{name} has {problem}; it has {present}: name the split as {name.partition(':')[0]}:SPLIT")
    return list(files)


def called(folder: Path, files: Iterable[Path], split: str) -> list[Path]:
    """The files whose path has the name of the split as a part."""
    return [path for path in files if split in _without_number(path.relative_to(folder)).parts]


def _without_number(path: PurePath) -> PurePath:
    """The path without suffix and part number: `data/dev` for `data/dev-00000-of-00002.parquet`."""
    return path.with_name(_PART.sub("", path.stem))


def _array(file: Path) -> Iterator[Row | ValueError]:
    try:
        rows = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read instances from {file}: {error}") from error
    if not isinstance(rows, list):
        raise UsageError(f"{file} is not a JSON array of objects, one for each instance")
    yield from (row if isinstance(row, dict) else ValueError("it is not a JSON object") for row in rows)


def _table(file: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException
    except ModuleNotFoundError as error:
        raise UsageError(f"{file.name} needs pyarrow to be read: pip install pyarrow") from error
    try:
        for batch in _batches(file):
            # dates, which JSON cannot represent, become text
            yield from json.loads(json.dumps(batch.to_pylist(), default=str))
    except (OSError, ArrowException) as error:
        raise UsageError(f"cannot read instances from {file}: {error}") from error


def _batches(file: Path) -> Iterator[Any]:
    """The rows as pyarrow batches of limited size."""
    if file.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(file) as table:
            yield from table.iter_batches(batch_size=64)
        return
    from pyarrow.ipc import open_stream

    with file.open("rb") as data, open_stream(data) as stream:
        for batch in stream:
            yield from (batch.slice(first, 64) for first in range(0, batch.num_rows, 64))
