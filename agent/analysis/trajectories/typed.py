"""Typed: the JSON of other programs, checked for what is read of it. What is not read may be anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from agent.errors import UsageError

__all__ = ["typed"]

_T = TypeVar("_T")


def typed(kind: type[_T], data: Any, path: Path) -> _T:
    """The data as this dataclass.

    Raises:
        agent.errors.UsageError: it is none; the message names the place.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is not a trajectory that can be read: `{where}`: {first['msg']}") from wrong
