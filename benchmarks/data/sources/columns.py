"""Reads the columns of public rows, whose form differs between sets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.parsing import literal

Row = Mapping[str, Any]


def test_ids(value: str | list[str]) -> tuple[str, ...]:
    """Read a list of test ids, which some sets store as text: as JSON or as a Python literal.

    Raises:
        ValueError: the value is not a list of texts.
    """
    ids = _literal(value) if isinstance(value, str) else value
    if not isinstance(ids, list | tuple) or not all(isinstance(i, str) for i in ids):
        raise ValueError(f"{str(value)[:80]!r} is not a list of test ids")
    return tuple(ids)


def read_object(value: str | Mapping[str, Any]) -> dict[str, Any]:
    """Read a dict, which some sets store as JSON text.

    Raises:
        ValueError: the value is not an object.
    """
    data = json.loads(value) if isinstance(value, str) else value
    if not isinstance(data, Mapping):
        raise ValueError(f"{str(value)[:80]!r} is not an object")
    return dict(data)


def patch(text: str | None) -> bytes:
    """The bytes of a patch. If a set cut off the final newline, which git requires, it is added."""
    data = (text or "").encode("utf-8", "surrogateescape")
    return data if not data or data.endswith(b"\n") else data + b"\n"


def instance_name(instance_id: object) -> str:
    """Return the id, after a check that it can name a folder.

    Raises:
        ValueError: it cannot.
    """
    if not isinstance(instance_id, str) or not instance_id or instance_id[0] == "." or {"/", "\0"} & {*instance_id}:
        raise ValueError(f"the instance_id {instance_id!r} cannot name a folder")
    return instance_id


def path_inside(folder: Path, name: str) -> Path:
    """Return the file at a path that a set gives, relative to the folder.

    Raises:
        ValueError: the name leads out of the folder.
    """
    if Path(name).is_absolute() or Path(os.path.normpath(name)).parts[:1] == (os.pardir,):
        raise ValueError(f"{name!r} leads out of {folder}")
    return folder / name


def first(row: Row, *columns: str) -> str:
    """The text of the first of these columns that is not empty; empty if all are."""
    return next((str(row[column]) for column in columns if row.get(column)), "")


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return literal(text)
    except ValueError:
        return None
