"""The items of memory: past repairs, insights, reflections and experiences, and the runs that they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent.learning.memory.issue import Issue
from agent.parsing import adapter

Kind = Literal["episode", "insight", "reflection", "experience"]
RunOutcome = Literal["solved", "improved", "failed"]
"""The verified outcome of a run; `failed`: the search ended without a patch."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run whose outcome was verified; other runs are not remembered."""

    id: str
    directory: str
    """Where it was when it was remembered."""
    issue: Issue
    outcome: RunOutcome
    evidence: str
    """What verified the outcome: the state, and the test results with its patch."""
    added: str
    """When it was remembered, in UTC (ISO 8601)."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A past repair, successful or not."""

    id: str
    sources: tuple[str, ...]
    """The ids of the runs it comes from; every item has at least one."""
    issue: str
    failures: tuple[str, ...]
    """The errors of the failing tests before any change, a line each."""
    files: tuple[str, ...]
    """The files that the patch changes; for a failed run, those changed in any state."""
    patch: str
    """Cut to a few kilobytes; for a failed run, a refuted patch, if it has one."""
    outcome: RunOutcome
    evidence: str
    tried: tuple[str, ...] = ()
    """For a failed run: what it tried, in a few words each."""
    kind: Literal["episode"] = "episode"

    @property
    def searched(self) -> str:
        """The text that queries are matched against."""
        return "\n".join((self.issue, *self.failures, *self.files))


@dataclass(frozen=True, slots=True)
class Insight:
    """A sentence that can help other repairs."""

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
    """A state whose value was far above or below what was expected when its parent was chosen."""

    id: str
    sources: tuple[str, ...]
    node: int
    predicted: float
    """In [0, 1]."""
    measured: float
    """In [0, 1]."""
    basis: str
    """Where the prediction is from: the `search`'s value of the parent, a `judge`'s, or the parent's `measured` one."""
    done: str
    """What led to the state, in a few words."""
    said: str
    """What the tests or a judge said about it."""
    issue: str
    lesson: str = ""
    """What a model learned from the difference; empty if none was asked."""
    kind: Literal["reflection"] = "reflection"

    @property
    def searched(self) -> str:
        """As `Episode.searched`."""
        return "\n".join((self.issue, self.done, self.said, self.lesson))


@dataclass(frozen=True, slots=True)
class Experience:
    """A step that made a failing test pass."""

    id: str
    sources: tuple[str, ...]
    cluster: str
    """The cluster of the error that was fixed (`agent.learning.memory.clusters`)."""
    error: str
    node: int
    """The state that the step led to."""
    done: str
    change: str
    """The edits as a diff, cut short."""
    score: float
    """How much the value rose, in (0, 1]."""
    kind: Literal["experience"] = "experience"

    @property
    def searched(self) -> str:
        """As `Episode.searched`."""
        return "\n".join((self.error, self.done, self.change))


Item = Episode | Insight | Reflection | Experience


def name_of(kind: Kind, *parts: object) -> str:
    """The id of an item: equal facts give equal ids."""
    digest = hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]
    return f"{kind[0] if kind != 'experience' else 'x'}{digest}"


def load(body: Mapping[str, Any]) -> Item:
    """The inverse of `dataclasses.asdict` for an item. Raises ValueError when the body is not one."""
    item: Item = adapter(Item, "kind").validate_python(body)
    return item


def load_source(body: Mapping[str, Any]) -> Source:
    """The inverse of `dataclasses.asdict` for a source. Raises ValueError when the body is not one."""
    source: Source = adapter(Source).validate_python(body)
    return source


def to_json(record: Item | Source) -> str:
    """The record as JSON: ASCII on one line, lone surrogates escaped."""
    return json.dumps(asdict(record), ensure_ascii=True, allow_nan=False)
