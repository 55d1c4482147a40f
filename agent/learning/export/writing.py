"""Writes rows as JSON lines, a file for each split. A file gets its final name when it is complete."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from agent.errors import UsageError
from agent.learning.export import Row
from agent.learning.export.columns import learn
from agent.learning.export.parquet import tabulate


class Files:
    """The files of a folder, each opened with its first row. As a context manager, it removes them all if an export
    fails."""

    def __init__(self, folder: Path, aside: bool = False, parquet: bool = False) -> None:
        """`aside`: provenance goes to separate files, line by line, for readers that refuse unknown columns. `parquet`:
        each file of rows is also written as a table."""
        self._folder = folder
        self._aside = aside
        self._parquet = parquet
        self._open: dict[str, IO[bytes]] = {}
        self.rows: Counter[str] = Counter()
        """The number of rows by file name."""
        self.columns: dict[str, str] = {}
        """The columns of all splits and their types."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for file in self._open.values():
                file.close()
            if kind is None:
                self._name()
        finally:
            for name in self.rows:
                _unnamed(self._folder, name).unlink(missing_ok=True)

    def write(self, split: str, row: Row) -> None:
        """Add a row to a split."""
        if self._aside:
            self._line(f"{split}.provenance.jsonl", row["provenance"])
            row = {key: value for key, value in row.items() if key != "provenance"}
        learn(self.columns, row)
        self._line(f"{split}.jsonl", row)

    def listed(self) -> list[dict[str, Any]]:
        """The name, number of rows and SHA-256 of each file, once all are complete."""
        written = sorted(self.rows.items())
        return [{"name": name, "rows": rows, "sha256": _digest(self._folder / name)} for name, rows in written]

    def _name(self) -> None:
        """Give the complete files their names."""
        for name in [*self.rows] if self._parquet else ():
            if not name.endswith(".provenance.jsonl"):
                table = name.removesuffix("jsonl") + "parquet"
                self.rows[table] = self.rows[name]
                tabulate(_unnamed(self._folder, name), _unnamed(self._folder, table), self.columns)
        for name in self.rows:
            _unnamed(self._folder, name).replace(self._folder / name)

    def _line(self, name: str, value: Any) -> None:
        if name not in self._open:
            self._open[name] = _unnamed(self._folder, name).open("wb")
        self._open[name].write(as_line(value))
        self.rows[name] += 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_line(value: Any) -> bytes:
    """A JSON value on one line, its keys in their own order."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def new_folder(folder: Path) -> Path:
    """Create the folder if it does not exist.

    Raises:
        UsageError: the folder is not empty, or cannot be made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder} exists and is not empty; name a new directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be made: {error.strerror}") from error
    return folder


def _unnamed(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"
