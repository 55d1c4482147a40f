"""Rows as Parquet tables. Nested values are JSON, so that no tool call gets the arguments of another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.learning.export import Row
from agent.learning.export.columns import LIST, learn

BATCH = 256
"""How many rows are held in memory."""


def require() -> None:
    """Raises UsageError when pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError("Parquet needs pyarrow: pip install pyarrow") from error


def tabulate(source: Path, target: Path, columns: Mapping[str, str] | None = None) -> None:
    """Write a file of JSON lines as a table with these columns (`agent.learning.export.columns`), by default those of
    all rows. A row without a column has null there."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    if columns is None:
        columns = dict[str, str]()
        for row in _rows(source):
            learn(columns, row)
    schema = pa.schema([pa.field(name, _type(kind)) for name, kind in columns.items()])
    with ParquetWriter(target, schema) as writer:
        remaining = _rows(source)
        while rows := list(islice(remaining, BATCH)):
            arrays = [_column([row.get(field.name) for row in rows], field.type) for field in schema]
            writer.write_table(pa.table(arrays, schema=schema))


def _rows(source: Path) -> Iterator[Row]:
    with source.open("rb") as file:
        yield from map(json.loads, file)


def _type(kind: str) -> Any:
    """The Arrow type of a column; a column with only nulls is a string column."""
    import pyarrow as pa

    if kind.startswith(LIST):
        return pa.list_(_type(kind.removeprefix(LIST)))
    return pa.json_() if kind == "json" else pa.type_for_alias(kind or "string")


def _column(values: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    if kind == pa.json_():
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string()).cast(kind)
    if kind == pa.list_(pa.json_()):
        texts = [value if value is None else [json.dumps(item) for item in value] for value in values]
        return pa.array(texts, pa.list_(pa.string())).cast(kind)
    return pa.array(values, kind)
