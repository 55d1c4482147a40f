"""Checks that an event fits a run before it is folded, so that a damaged or hostile journal is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from agent.budget import Stop
from agent.parsing import adapter
from agent.run.events import (
    Added,
    Begun,
    Ended,
    Event,
    Exhausted,
    Failed,
    Merged,
    Noted,
    Remeasured,
    Round,
    Started,
    Steered,
    Summarised,
    Voted,
)
from agent.run.grade import Status
from agent.run.tree.node import Node, NodeId
from agent.run.verdict import VERDICT
from sandboxes import Forked

_Lines = dict[str, list[int]]


@dataclass(frozen=True)
class _Settings:
    policy: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    value: dict[str, Any] = field(default_factory=dict)
    sandbox: dict[str, Any] = field(default_factory=dict)
    budget: dict[str, Any] = field(default_factory=dict)
    rollouts: int = 1
    rounds: int = 1


@dataclass(frozen=True)
class _Verdict:
    solved: bool
    improved: bool = False
    applied: bool = False
    patch: str | None = None
    final: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    scope: str = ""


@dataclass(frozen=True)
class _Spectrum:
    outcomes: dict[str, str]
    executed: dict[str, _Lines]
    imported: _Lines
    problem: str


@dataclass(frozen=True)
class _Discarded:
    patch: str


_NOTES: Mapping[str, type] = {"discarded": _Discarded, "forked": Forked, "spectrum": _Spectrum, VERDICT: _Verdict}
"""The shape of notes by key. Notes with other keys are checked where they are read."""


def require_sound(event: Event, nodes: int) -> None:
    """Raises ValueError if the event names a node that a run of so many nodes does not have, or an impossible value."""
    if strange := [node for node in _named(event) if not 0 <= node < nodes]:
        raise ValueError(f"{event.kind}: there is no node {strange[0]}")
    match event:
        case Added() if bool(nodes) != bool(event.node.parents):
            raise ValueError(f"node {event.node.id} has {len(event.node.parents)} parents")
        case Added(node=Node(evaluation=found)) | Remeasured(evaluation=found) if not 0 <= found.value <= 1:
            raise ValueError(f"{event.kind}: {found.value} is not a value in [0, 1]")
        case Round() if event.first != nodes:
            raise ValueError(f"{event.kind}: its first state is {event.first}, and {nodes} comes next")
        case Started():
            adapter(_Settings).validate_python(event.settings)
        case Noted() if event.key in _NOTES:
            adapter(_NOTES[event.key]).validate_python(event.data)
        case Ended() if event.stop not in Stop.__members__ or event.status not in get_args(Status):
            raise ValueError(f"a run cannot end with the status {event.status!r} and the stop {event.stop!r}")


def _named(event: Event) -> Iterator[NodeId]:
    match event:
        case Added():
            yield from event.node.parents
        case Merged():
            yield from (event.parent, event.node)
        case Remeasured() | Failed() | Exhausted():
            yield event.node
        case Begun():
            yield from (event.choice.node, *(() if event.choice.other is None else (event.choice.other,)))
        case Steered():
            yield event.order.node
        case Summarised():
            yield event.summary.leaf
        case Voted():
            yield from event.ballot.group
        case Round():
            yield from (order.node for order in event.repairs)
        case Ended(best=int(best)):
            yield best
