"""The operations that keep the list of insights short: add, merge and drop (ExpeRepair, arXiv 2506.10484).

Invariant: every insight names the runs that it comes from; a merged one names those of all its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from agent.learning.memory.claims import alike
from agent.learning.memory.items import Insight, name_of
from agent.models.answers import line


@dataclass(frozen=True, slots=True)
class Add:
    """Add a new insight."""

    text: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Replace insights that say the same, or parts of one thing, by this one."""

    ids: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove an insight that is wrong or says nothing."""

    id: str
    reason: str


Operation = Add | Merge | Drop


def operated(insights: Iterable[Insight], operations: Sequence[Operation], source: str) -> list[Insight]:
    """The insights, by id, after the run `source` made these operations.

    Raises:
        KeyError: an operation names an insight that does not exist, or that an earlier operation removed.
    """
    known = {insight.id: insight for insight in insights}
    for operation in operations:
        match operation:
            case Add(text):
                _add(known, text, (source,))
            case Merge(ids, text):
                merged = [known.pop(name) for name in ids]
                _add(known, text, (source, *(run for insight in merged for run in insight.sources)))
            case Drop(id):
                del known[id]
            case _:
                assert_never(operation)
    return [known[name] for name in sorted(known)]


def applicable(operations: Iterable[Operation], insights: Iterable[Insight]) -> list[Operation]:
    """The operations whose insights all exist."""
    existing, kept = {insight.id for insight in insights}, list[Operation]()
    for operation in operations:
        if existing.issuperset(named := named_by(operation)):
            kept.append(operation)
            existing.difference_update(named)
    return kept


def named_by(operation: Operation) -> tuple[str, ...]:
    """The ids of the insights that an operation removes."""
    match operation:
        case Merge(ids):
            return ids
        case Drop(id):
            return (id,)
        case Add():
            return ()


def learned(insights: Iterable[Insight], lessons: Iterable[str], source: str) -> list[Insight]:
    """As `operated`, without a model: a lesson like an existing insight adds its run to that; others are added."""
    known = list(insights)
    for lesson in lessons:
        same = next((insight for insight in known if alike(insight.text, lesson)), None)
        operation = Merge((same.id,), same.text) if same else Add(lesson)
        known = operated(known, [operation], source)
    return known


def insight_id(text: str) -> str:
    """The id of the insight that says this."""
    return name_of("insight", line(text))


def _add(known: dict[str, Insight], text: str, sources: Iterable[str]) -> None:
    name = insight_id(text)
    sources = {*sources, *(known[name].sources if name in known else ())}
    known[name] = Insight(name, tuple(sorted(sources)), line(text))
