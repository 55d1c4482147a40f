"""Rejoining: the edits of earlier rollouts that made goal tests pass, taken up together where they are in different
places.

A state that an earlier rollout has reached is known and worth nothing to a new one; several of their repairs in one
proposal are new, and often what is missing where an issue has several causes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

from agent.measure.diffs import FilePatch, parse
from agent.policy.mutate.source import Change, Source
from agent.run.rollouts import Summary

__all__ = ["Repair", "idle_lines", "joined", "repairs"]

MOST = 6
"""Repairs that are joined, the best ones."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What one rollout, or several together, changed in the base state, and what came of it."""

    changes: Mapping[str, tuple[Change, ...]]
    """Per path, in the order of the file."""
    gained: frozenset[str]
    """The goal tests that pass because of it."""


def repairs(
    summaries: Sequence[Summary],
    goals: Collection[str],
    patch: Callable[[str], bytes],
    source: Callable[[str], Source | None],
) -> list[Repair]:
    """Of each rollout that made goal tests pass and was not solved, in their order. One whose patch cannot be made by
    editing files that are there (`source`) is passed over."""
    found = []
    for summary in summaries:
        gained = frozenset(summary.tests_passed) & frozenset(goals)
        if gained and summary.outcome != "solved" and summary.patch_blob:
            changes = {file.path: _changes(file, source(file.path)) for file in parse(patch(summary.patch_blob))}
            if changes and all(changes.values()):
                found.append(Repair(changes, gained))
    return found


def joined(found: Sequence[Repair]) -> Iterator[Repair]:
    """Several repairs at once that are in different places, each with a test that only it makes pass: those that
    together make the most pass first, then the fewest, then the best ones."""
    some = found[:MOST]
    groups = chain.from_iterable(combinations(some, size) for size in range(2, len(some) + 1))
    together = (_join(group) for group in groups if _each_adds(group))
    return iter(sorted(filter(None, together), key=lambda repair: -len(repair.gained)))


def idle_lines(summaries: Iterable[Summary], patch: Callable[[str], bytes]) -> frozenset[tuple[str, int]]:
    """Paths and lines of the base state that rollouts changed without any test ending otherwise."""
    idle = (summary for summary in summaries if summary.outcome == "unchanged" and summary.patch_blob)
    files = chain.from_iterable(parse(patch(summary.patch_blob)) for summary in idle)
    return frozenset((file.path, line) for file in files for line in file.gone | file.beside)


def _join(some: Sequence[Repair]) -> Repair | None:
    """All of them at once; None: two are in the same place."""
    changes: dict[str, tuple[Change, ...]] = {}
    for repair in some:
        for path, new in repair.changes.items():
            changes[path] = tuple(sorted({*changes.get(path, ()), *new}, key=lambda c: (c.start, c.end)))
    if any(_collide(one, two) for each in changes.values() for one, two in pairwise(each)):
        return None
    return Repair(changes, frozenset().union(*(repair.gained for repair in some)))


def _collide(one: Change, two: Change) -> bool:
    """Whether of two changes, in the order of the file, it is open what both together make."""
    replaces = one.start < one.end and two.start < two.end
    return one.end > two.start or (one.end == two.start and not replaces)


def _each_adds(some: Sequence[Repair]) -> bool:
    """Whether each makes a test pass that none of the others does."""
    return all(
        repair.gained - frozenset().union(*(other.gained for other in some if other is not repair)) for repair in some
    )


def _changes(file: FilePatch, source: Source | None) -> tuple[Change, ...]:
    """A patch of one file as changes of its bytes; none where the file has fewer lines, or cannot be edited."""
    count = source.data.count(b"\n") if source else 0
    if source is None or any(line > count + 1 for line in file.gone):
        return ()
    return tuple(
        Change(*_span(source, first, gone), "".join(f"{line}\n" for line in new))
        for first, gone, new in _regions(file, count + 1)
    )


def _span(source: Source, first: int, gone: int) -> tuple[int, int]:
    """The bytes of so many whole lines."""
    start = source.line_span(first, first)[0]
    return start, source.line_span(first, first + gone - 1)[1] if gone else start


def _regions(file: FilePatch, last: int) -> Iterator[tuple[int, int, list[str]]]:
    """Where lines are replaced: the first old line, how many old ones go, and the new ones."""
    old, new = 1, 1
    while old <= last + 1 and (file.added or file.gone):
        first, come = old, []
        while old in file.gone or new in file.added:
            if new in file.added:
                come.append(file.added[new])
            old, new = old + (old in file.gone), new + (new in file.added)
        if first != old or come:
            yield first, old - first, come
        old, new = old + 1, new + 1
