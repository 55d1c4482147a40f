"""What a measured state is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent.models import Ask, directly

if TYPE_CHECKING:
    from agent.measure import SuiteReport
    from agent.task import Task
    from agent.tree import Node

__all__ = ["Evaluation", "Value"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A state's worth."""

    value: float
    """In [0, 1]; 1 only when solved."""
    solved: bool = False
    """All goal tests pass and nothing that passed in the base state fails."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The terms of the value, by name."""
    notes: str = ""
    """Text for the policy that tries again from the same parent."""


class Value(Protocol):
    """Judges measured states. `path` runs from the root to the state's parent, empty for the root itself."""

    def evaluate(self, task: Task, path: tuple[Node, ...], report: SuiteReport, ask: Ask = directly) -> Evaluation:
        """The worth of a state with this report. A model is asked by `ask` and in no other way."""
        ...
