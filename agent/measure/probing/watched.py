"""Watched: what a run of one test showed of its values, as `agent.measure.inside.watching` says it.

Law: it comes out of a process in which the patch's own code ran. What makes no sense is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["Call", "Error", "Frame", "Function", "Probed", "Series", "Watched", "first_failure"]


@dataclass(frozen=True, slots=True)
class Series:
    """The first and the last of many values, as text."""

    count: int = 0
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function."""

    arguments: Mapping[str, str]
    lines: tuple[tuple[int, int, Mapping[str, Series]], ...]
    """Each line that ran, how often, and what it made of which names."""
    ended: str


@dataclass(frozen=True, slots=True)
class Function:
    """What was noted of a function of the workspace."""

    path: str
    name: str
    line: int
    calls: int
    cut: bool
    """It ran too many lines; its later calls are only counted."""
    last: Call
    wanted: Series | None = None
    """Its calls, where it was asked for by its name."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found."""

    count: int
    first: tuple[str, ...]
    last: tuple[str, ...]
    hits: int
    calls: int
    """Of the functions that hold the line or have the name."""
    ran: tuple[int, ...]
    """Lines of those functions that ran."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A call of the workspace's that was under way when the test failed."""

    path: str
    line: int
    name: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Error:
    """What ended the test, with the calls that it came through, outermost first."""

    said: str
    frames: tuple[Frame, ...]
    """The first and the last of them."""
    left_out: int = 0
    """How many were between those."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What was noted of a test."""

    id: str
    functions: tuple[Function, ...] = ()
    """Those in which something happened last, the very last at the end."""
    called: tuple[str, ...] = ()
    probes: tuple[Probed, ...] = ()
    error: Error | None = None
    """None: it did not fail."""
    stopped: str = ""
    """Why the later part of the test was not watched."""


def first_failure(facts: Sequence[Mapping[str, Any]]) -> Watched | None:
    """Of tests in the order of running the first that failed, else the last; None when nothing sensible is said."""
    failed = (fact for fact in facts if fact.get("error"))
    fact = next(failed, facts[-1] if facts else None)
    try:
        watched: Watched | None = None if fact is None else _adapter().validate_python(fact)
    except ValueError:
        return None
    return watched


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Watched)
