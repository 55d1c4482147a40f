"""Plan: the parts of an issue, and which parts they depend on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from agent.measure.probing.spectrum import Spectrum

MOST = 12
"""The maximum number of parts in a plan."""
REST = "rest"
"""The id of the part for the goal tests that no other part has."""
TOGETHER = 0.5
"""Two tests belong together if they share this fraction of the lines of the one that executes fewer."""
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class SubTask:
    """A part of an issue."""

    id: str
    """At most 40 lower-case letters, digits, `-` and `_`."""
    statement: str
    """What to do."""
    goal_tests: tuple[str, ...] = ()
    """The failing tests that have to pass; at least one if the task has goal tests."""
    files: tuple[str, ...] = ()
    """The files that it probably changes, as a hint."""
    depends_on: tuple[str, ...] = ()
    """The parts that have to be merged before it begins."""


def check(parts: Sequence[SubTask], goals: Sequence[str]) -> None:
    """Check that these are parts of a task with these goal tests.

    Raises:
        ValueError: they are not; the message says why.
    """
    ids = [part.id for part in parts]
    if not 1 <= len(parts) <= MOST:
        raise ValueError(f"there are {len(parts)} parts: give 1 to {MOST}")
    for part in parts:
        if not _ID.fullmatch(part.id) or ids.count(part.id) > 1:
            raise ValueError(f"the id {part.id[:50]!r}: give each part its own, of lower-case letters, digits, - and _")
        if not part.statement.strip():
            raise ValueError(f"the part {part.id!r} does not say what is to be done")
        if unknown := [test for test in part.goal_tests if test not in goals]:
            raise ValueError(f"the part {part.id!r} names {unknown[0][:200]!r}, which is not one of the failing tests")
        if goals and not part.goal_tests:
            raise ValueError(f"the part {part.id!r} names no failing test: nothing would say that it is done")
        if unknown := [other for other in part.depends_on if other not in ids]:
            raise ValueError(f"the part {part.id!r} depends on {unknown[0][:50]!r}, which is not one of the parts")
    named = [test for part in parts for test in part.goal_tests]
    if twice := [test for test in named if named.count(test) > 1]:
        raise ValueError(f"{twice[0][:200]!r} is the goal of two parts: give it to one")
    try:
        TopologicalSorter({part.id: part.depends_on for part in parts}).prepare()
    except CycleError as error:
        raise ValueError(f"these parts depend on each other: {', '.join(error.args[1])}") from error


def completed(parts: Sequence[SubTask], goals: Sequence[str]) -> tuple[SubTask, ...]:
    """Return the parts, and one more for the goal tests that no part has."""
    named = {test for part in parts for test in part.goal_tests}
    left = tuple(test for test in goals if test not in named)
    if not left:
        return tuple(parts)
    ids = tuple(part.id for part in parts)
    name = next(name for name in (REST, *(f"{REST}-{n}" for n in range(MOST + 1))) if name not in ids)
    return (*parts, SubTask(name, "Do what the other parts have left.", left, depends_on=ids))


def by_code(goals: Sequence[str], spectrum: Spectrum) -> tuple[SubTask, ...]:
    """Return independent parts, made by grouping the goal tests by the code that they execute. Tests with unknown
    coverage form one group. Without goals there is one part."""
    import networkx as nx

    lines = {test: spectrum.lines_of(test) for test in goals}
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(goals)
    graph.add_edges_from(
        (one, other) for one in goals for other in goals if one < other and _together(lines[one], lines[other])
    )
    groups = sorted(nx.connected_components(graph), key=lambda group: min(map(goals.index, group)))
    parts = [_part(number, [test for test in goals if test in group], lines) for number, group in enumerate(groups, 1)]
    return tuple(parts) or (SubTask("part-1", "Do what the issue asks."),)


def _part(number: int, goals: Sequence[str], lines: Mapping[str, frozenset[tuple[str, int]]]) -> SubTask:
    files = {path for test in goals for path, _ in lines[test]}
    statement = "Make the failing tests pass that are named below."
    return SubTask(f"part-{number}", statement, tuple(goals), tuple(sorted(files)))


def _together(one: frozenset[tuple[str, int]], other: frozenset[tuple[str, int]]) -> bool:
    if not one or not other:
        return not one and not other
    return len(one & other) >= TOGETHER * min(len(one), len(other))
