"""What is remembered: past repairs, insights, reflections and experiences, and the runs that they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, Literal

from agent.learning.memory.issue import Issue

__all__ = [
    "Episode",
    "Experience",
    "Insight",
    "Item",
    "Kind",
    "Outcome",
    "Reflection",
    "Source",
    "load",
    "load_source",
    "name_of",
    "to_json",
]

Kind = Literal["episode", "insight", "reflection", "experience"]
Outcome = Literal["solved", "improved", "failed"]
"""What a run's verified patch did; `failed`: the search came to its end without one."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run whose outcome was verified: nothing is remembered of others."""

    id: str
    directory: str
    """Where it was when it was remembered."""
    issue: Issue
    outcome: Outcome
    evidence: str
    """What verified it: the state, and what the tests said of its patch."""
    added: str
    """When, in UTC (ISO 8601)."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A past repair, successful or not."""

    id: str
    sources: tuple[str, ...]
    """The ids of the runs it comes from; every item has at least one."""
    issue: str
    failures: tuple[str, ...]
    """What the failing tests said before any change, a line each."""
    files: tuple[str, ...]
    """That the patch changes; of a failed run, that were changed on the way."""
    patch: str
    """Cut to a few kilobytes; of a failed run, a patch that was refuted, if there is one."""
    outcome: Outcome
    evidence: str
    tried: tuple[str, ...] = ()
    """Of a failed run: what was done in it, in a few words each."""
    kind: Literal["episode"] = "episode"

    @property
    def searched(self) -> str:
        """What a query is compared with."""
        return "\n".join((self.issue, *self.failures, *self.files))


@dataclass(frozen=True, slots=True)
class Insight:
    """Something that another repair can use, in a sentence."""

    id: str
    sources: tuple[str, ...]
    text: str
    kind: Literal["insight"] = "insight"

    @property
    def searched(self) -> str:
        """As `Episode.searched`."""
        return self.text


@dataclass(frozen=True, slots=True)
class Reflection:
    """A state that was worth far more, or far less, than was expected when its parent was chosen."""

    id: str
    sources: tuple[str, ...]
    node: int
    predicted: float
    """In [0, 1]."""
    measured: float
    """In [0, 1]."""
    basis: str
    """Whose prediction: the `search`'s value of the parent, a `judge`'s, or what the parent was `measured` as."""
    done: str
    """What led to the state, in a few words."""
    said: str
    """What the tests, or a judge, said of it."""
    issue: str
    kind: Literal["reflection"] = "reflection"

    @property
    def searched(self) -> str:
        """As `Episode.searched`."""
        return "\n".join((self.issue, self.done, self.said))


@dataclass(frozen=True, slots=True)
class Experience:
    """A step that made a failing test pass."""

    id: str
    sources: tuple[str, ...]
    cluster: str
    """The key of errors like the one that went away (`agent.learning.memory.clusters`)."""
    error: str
    node: int
    """The state that the step led to."""
    done: str
    change: str
    """As a diff shows it, cut to a note."""
    score: float
    """What the state gained in value, in (0, 1]."""
    kind: Literal["experience"] = "experience"

    @property
    def searched(self) -> str:
        """As `Episode.searched`."""
        return "\n".join((self.error, self.done, self.change))


Item = Episode | Insight | Reflection | Experience


def name_of(kind: Kind, *parts: object) -> str:
    """The id of an item: the same facts give the same one."""
    return f"{kind[0] if kind != 'experience' else 'x'}{_digest(parts)}"


def load(body: Mapping[str, Any]) -> Item:
    """The inverse of `dataclasses.asdict`. Raises ValueError when it is none."""
    item: Item = _adapter().validate_python(body)
    return item


def load_source(body: Mapping[str, Any]) -> Source:
    """The inverse of `dataclasses.asdict`. Raises ValueError when it is none."""
    source: Source = _source_adapter().validate_python(body)
    return source


def to_json(record: Item | Source) -> str:
    """ASCII on one line, lone surrogates escaped."""
    return json.dumps(asdict(record), ensure_ascii=True, allow_nan=False)


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


@cache
def _source_adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Source)


@cache
def _adapter() -> Any:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Item, Field(discriminator="kind")])
