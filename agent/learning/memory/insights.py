"""Insights: what many repairs taught, kept short by adding, merging and dropping (ExpeRepair, arXiv 2506.10484).

Law: every insight names the runs that it comes from, and the one that a merge makes has those of all that went into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from agent.learning.memory.claims import alike
from agent.learning.memory.items import Insight, name_of
from agent.models.conversing import line

__all__ = ["Add", "Drop", "Merge", "Operation", "applicable", "learned", "named_by", "operated"]


@dataclass(frozen=True, slots=True)
class Add:
    """Something new was learned."""

    text: str


@dataclass(frozen=True, slots=True)
class Merge:
    """Several insights say the same, or parts of one thing: from now on they are this one."""

    ids: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Drop:
    """An insight was shown to be wrong, or says nothing."""

    id: str
    reason: str


Operation = Add | Merge | Drop


def operated(insights: Iterable[Insight], operations: Sequence[Operation], source: str) -> list[Insight]:
    """What is known after a run has taught this, in the order of ids.

    Raises:
        KeyError: an operation names an insight that there is not, or that one before it took away.
    """
    known = {each.id: each for each in insights}
    for operation in operations:
        match operation:
            case Add(text):
                _add(known, text, (source,))
            case Merge(ids, text):
                merged = [known.pop(each) for each in ids]
                _add(known, text, (source, *(run for each in merged for run in each.sources)))
            case Drop(id):
                del known[id]
            case _:
                assert_never(operation)
    return [known[name] for name in sorted(known)]


def applicable(operations: Iterable[Operation], insights: Iterable[Insight]) -> list[Operation]:
    """Those of the operations whose insights are all there."""
    there, kept = {each.id for each in insights}, list[Operation]()
    for operation in operations:
        if there.issuperset(named := named_by(operation)):
            kept.append(operation)
            there.difference_update(named)
    return kept


def named_by(operation: Operation) -> tuple[str, ...]:
    """The ids of the insights that an operation takes away."""
    match operation:
        case Merge(ids):
            return ids
        case Drop(id):
            return (id,)
        case Add():
            return ()


def learned(insights: Iterable[Insight], lessons: Iterable[str], source: str) -> list[Insight]:
    """The same without a model: a lesson that reads like a known insight is one more run behind that, any other is
    added."""
    known = list(insights)
    for lesson in lessons:
        found = next((each for each in known if alike(each.text, lesson)), None)
        operation = Merge((found.id,), found.text) if found else Add(lesson)
        known = operated(known, [operation], source)
    return known


def _add(known: dict[str, Insight], text: str, sources: Iterable[str]) -> None:
    text = line(text)
    name = name_of("insight", text)
    sources = {*sources, *(known[name].sources if name in known else ())}
    known[name] = Insight(name, tuple(sorted(sources)), text)
