"""The values that were seen in a run of one test, as `agent.measure.inside.watching` reports them.

Invariant: the data is not trusted, since it comes from a process in which the patch's own code ran. Malformed data is
dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.parsing import adapter


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
    """Each line that ran, how often, and the values it gave to names."""
    ended: str


@dataclass(frozen=True, slots=True)
class Function:
    """What was seen of a function of the workspace."""

    path: str
    name: str
    line: int
    calls: int
    cut: bool
    """Whether it ran too many lines, so that later calls were only counted."""
    last: Call
    wanted: Series | None = None
    """Its calls, if a probe named it."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe found."""

    values: Series
    hits: int
    calls: int
    """Calls of the functions that contain the line or have the name."""
    ran: tuple[int, ...]
    """Lines of those functions that ran."""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A call in the workspace that was active when the test failed."""

    path: str
    line: int
    name: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Error:
    """The exception that ended the test, with the calls it passed through, outermost first."""

    said: str
    frames: tuple[Frame, ...]
    """The first and the last calls."""
    left_out: int = 0
    """The number of calls between those."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen of a test."""

    id: str
    functions: tuple[Function, ...] = ()
    """The most recently active functions, the latest at the end."""
    called: tuple[str, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
    error: Error | None = None
    """None: the test did not fail."""
    stopped: str = ""
    """Why the later part of the test was not watched."""


def first_failure(facts: Sequence[Mapping[str, Any]]) -> Watched | None:
    """The first failed test in running order, else the last test; None if the data is missing or malformed."""
    failed = (fact for fact in facts if fact.get("error"))
    fact = next(failed, facts[-1] if facts else None)
    try:
        watched: Watched | None = None if fact is None else adapter(Watched).validate_python(fact)
    except ValueError:
        return None
    return watched
