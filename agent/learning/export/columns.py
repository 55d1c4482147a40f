"""Columns: what each column of the rows holds, so that readers of tables and of lines need not guess.

A reader that guesses goes by the rows that come first, and fails at a call with an argument that none of those has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LIST", "learn"]

LIST = "list of "
"""How the kind of a list begins."""


def learn(known: dict[str, str], row: Mapping[str, Any]) -> None:
    """Take in a row. A column is of the kind of its first value that is not null (`bool`, `int64`, `float64`, `string`,
    `json`, or a list of `float64` or `json`); the kind of one that has only null is empty."""
    for name, value in row.items():
        if not known.get(name):
            known[name] = _kind(value)


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
