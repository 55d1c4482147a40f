"""The type of each column of the rows, so that readers of tables and JSON lines need not guess.

A reader that guesses looks at the first rows, and fails at a tool call with an argument that none of them has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIST = "list of "
"""The prefix of list types."""


def learn(columns: dict[str, str], row: Mapping[str, Any]) -> None:
    """Add the columns of a row. A column has the type of its first value that is not null (`bool`, `int64`, `float64`,
    `string`, `json`, or a list of `float64` or `json`); a column with only nulls has the empty type."""
    for name, value in row.items():
        if not columns.get(name):
            columns[name] = _kind(value)


def _kind(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list() if value and all(isinstance(each, (int, float)) for each in value):
            return f"{LIST}float64"
        case list():
            return f"{LIST}json"
        case _:
            return "json"
