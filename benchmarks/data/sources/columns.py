"""What a column of a public row holds, read from either of the forms in which sets keep it."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Row", "first", "instance_name", "patch", "path_inside", "read_object", "test_ids"]

Row = Mapping[str, Any]


def test_ids(value: str | list[str]) -> tuple[str, ...]:
    """A list of test ids, which some sets keep in a string, as JSON or as Python writes it.

    Raises:
        ValueError: it is neither.
    """
    ids = _literal(value) if isinstance(value, str) else value
    if not isinstance(ids, list | tuple) or not all(isinstance(i, str) for i in ids):
        raise ValueError(f"{str(value)[:80]!r} is not a list of test ids")
    return tuple(ids)


def read_object(value: str | Mapping[str, Any]) -> dict[str, Any]:
    """A dict, which some sets keep as JSON in a string.

    Raises:
        ValueError: it is neither.
    """
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise ValueError(f"{str(value)[:80]!r} is not an object")
    return dict(found)


def patch(text: str | None) -> bytes:
    """The bytes of a patch. Without the end of its last line, which some sets cut off, git would refuse it."""
    data = (text or "").encode("utf-8", "surrogateescape")
    return data if not data or data.endswith(b"\n") else data + b"\n"


def instance_name(instance_id: str) -> str:
    """The id, where it can name a folder.

    Raises:
        ValueError: it cannot.
    """
    if not instance_id or instance_id.startswith(".") or "/" in instance_id or "\0" in instance_id:
        raise ValueError(f"the instance_id {instance_id!r} cannot name a folder")
    return instance_id


def path_inside(folder: Path, name: str) -> Path:
    """The file that a set names by its path from the folder.

    Raises:
        ValueError: the name leads out of the folder.
    """
    if Path(name).is_absolute() or Path(os.path.normpath(name)).parts[:1] == (os.pardir,):
        raise ValueError(f"{name!r} leads out of {folder}")
    return folder / name


def first(row: Row, *columns: str) -> str:
    """The text of the first of these columns that has one; empty when none has."""
    return next((str(row[column]) for column in columns if row.get(column)), "")


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
