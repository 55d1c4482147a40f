"""What a measured state is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent.run.memo import Memo
from agent.run.tree.evaluation import Evaluation

if TYPE_CHECKING:
    from agent.measure import SuiteReport
    from agent.models import Ask
    from agent.run.tree.tree import Node
    from agent.task import Task

__all__ = ["EvaluationInput", "Value"]


@dataclass(frozen=True, slots=True)
class EvaluationInput:
    """A measured state, as whoever values it is shown it."""

    task: Task
    path: tuple[Node, ...]
    """From the root to the state's parent; empty for the root itself."""
    report: SuiteReport
    patch: Callable[[], bytes] = bytes
    """What the state changes in the base state, as a git patch."""
    ask: Ask | None = None
    """None: no model may be asked."""
    once: Memo = field(default=lambda key, find: find())
    known: Evaluation | None = None
    """What the state was worth when it was measured before: what models said then is not asked again."""


class Value(Protocol):
    """Values measured states. One object serves all workers of a run, at once."""

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The worth of the state. Solved only by its tests, and worth 0 where the report is not valid.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: a model that has to be asked cannot be.
        """
        ...
