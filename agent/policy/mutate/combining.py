"""Combining: joins edits of earlier rollouts that made goal tests pass, if they are in different places.

A state that an earlier rollout has reached gains nothing from being reached again. Several repairs in one proposal are
new, and are often what is missing if an issue has several causes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

from agent.measure.diffs import FilePatch, parse
from agent.policy.mutate.source import Change, Source
from agent.run.rollouts import Summary

MOST = 6
"""How many repairs are combined, the best ones."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The changes of one rollout, or of several together, to the base state, and their result."""

    changes: Mapping[str, tuple[Change, ...]]
    """For each path, the changes in the order of the file."""
    gained: frozenset[str]
    """The goal tests that pass because of them."""


def repairs(
    summaries: Sequence[Summary],
    goals: Collection[str],
    patch: Callable[[str], bytes],
    source: Callable[[str], Source | None],
) -> list[Repair]:
    """The repairs of the rollouts that made goal tests pass but did not solve the task, in their order. Patches that do
    not only edit existing files (those of `source`) are left out."""
    found = []
    for summary in summaries:
        gained = frozenset(summary.tests_passed) & frozenset(goals)
        if gained and summary.outcome != "solved" and summary.patch_blob:
            changes = {file.path: _changes(file, source(file.path)) for file in parse(patch(summary.patch_blob))}
            if changes and all(changes.values()):
                found.append(Repair(changes, gained))
    return found


def combined(ranked: Sequence[Repair]) -> Iterator[Repair]:
    """Combinations of repairs in different places, each of which makes a test pass that the others do not. The order
    is: the most passing tests, then the fewest repairs, then the best ones."""
    best = ranked[:MOST]
    groups = chain.from_iterable(combinations(best, size) for size in range(2, len(best) + 1))
    together = (_combined(group) for group in groups if _each_adds(group))
    return iter(sorted(filter(None, together), key=lambda repair: -len(repair.gained)))


def idle_lines(summaries: Iterable[Summary], patch: Callable[[str], bytes]) -> frozenset[tuple[str, int]]:
    """Paths and lines of the base state that rollouts changed without changing the result of any test."""
    idle = (summary for summary in summaries if summary.outcome == "unchanged" and summary.patch_blob)
    files = chain.from_iterable(parse(patch(summary.patch_blob)) for summary in idle)
    return frozenset((file.path, line) for file in files for line in file.gone | file.beside)


def _combined(group: Sequence[Repair]) -> Repair | None:
    """All repairs at once; None if two are in the same place."""
    changes: dict[str, tuple[Change, ...]] = {}
    for repair in group:
        for path, new in repair.changes.items():
            changes[path] = tuple(sorted({*changes.get(path, ()), *new}, key=lambda c: (c.start, c.end)))
    if any(_collide(one, two) for in_file in changes.values() for one, two in pairwise(in_file)):
        return None
    return Repair(changes, frozenset().union(*(repair.gained for repair in group)))


def _collide(one: Change, two: Change) -> bool:
    """Whether the result of two changes, given in the order of the file, is ambiguous."""
    replaces = one.start < one.end and two.start < two.end
    return one.end > two.start or (one.end == two.start and not replaces)


def _each_adds(group: Sequence[Repair]) -> bool:
    """Whether each repair makes a test pass that none of the others does."""
    passes = Counter(test for repair in group for test in repair.gained)
    return all(any(passes[test] == 1 for test in repair.gained) for repair in group)


def _changes(file: FilePatch, source: Source | None) -> tuple[Change, ...]:
    """The patch of one file as changes of its bytes; empty if the file has fewer lines, or cannot be edited."""
    count = source.data.count(b"\n") if source else 0
    if source is None or any(line > count + 1 for line in file.gone):
        return ()
    return tuple(
        Change(*_span(source, first, gone), "".join(f"{line}\n" for line in new))
        for first, gone, new in _regions(file, count + 1)
    )


def _span(source: Source, first: int, gone: int) -> tuple[int, int]:
    """The byte span of `gone` whole lines."""
    start = source.line_span(first, first)[0]
    return start, source.line_span(first, first + gone - 1)[1] if gone else start


def _regions(file: FilePatch, last: int) -> Iterator[tuple[int, int, list[str]]]:
    """Where lines are replaced: the first old line, how many old lines are removed, and the new lines."""
    old, new = 1, 1
    while old <= last + 1 and (file.added or file.gone):
        first, added = old, []
        while old in file.gone or new in file.added:
            if new in file.added:
                added.append(file.added[new])
            old, new = old + (old in file.gone), new + (new in file.added)
        if first != old or added:
            yield first, old - first, added
        old, new = old + 1, new + 1
