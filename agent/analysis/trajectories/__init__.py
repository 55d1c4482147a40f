"""Trajectories: what other programs recorded of one rollout, read as action records like those of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import UsageError
from agent.run.action_log import ActionRecord

__all__ = ["Trajectory", "typed"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A rollout of another program."""

    format: str
    """The program that wrote it, and the version of its format."""
    action_records: tuple[ActionRecord, ...]
    ended: str
    """The exit status, in the program's words."""
    patch: str = ""
    """The submitted patch."""


def typed(kind: type[_T], data: Any, path: Path) -> _T:
    """The JSON of a file as an instance of this dataclass. Other keys are ignored.

    Raises:
        agent.errors.UsageError: it does not match; the message names the place.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is not a trajectory that can be read: `{where}`: {first['msg']}") from wrong
