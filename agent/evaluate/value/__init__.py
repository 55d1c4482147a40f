"""Values: the worth of a measured state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent.run.memo import Memo
from agent.run.tree.evaluation import Evaluation

if TYPE_CHECKING:
    from agent.actions import Submit
    from agent.measure import SuiteReport
    from agent.models import Ask
    from agent.run.tree.node import Node
    from agent.run.tree.tree import Tree
    from agent.task import Task

__all__ = ["EvaluationInput", "Value"]


@dataclass(frozen=True, slots=True)
class EvaluationInput:
    """A measured state, as a value sees it."""

    task: Task
    path: tuple[Node, ...]
    """From the root to the state's parent; empty for the root itself."""
    report: SuiteReport
    patch: Callable[..., bytes] = lambda context=3: b""
    """The state's changes to the base state, as a git patch with `context` unchanged lines around each change."""
    ask: Ask | None = None
    """Asks a model; None if no model may be asked."""
    memo: Memo = field(default=lambda key, find: find())
    state: str = ""
    """The state's digest."""
    tree: Tree | None = None
    """The states found so far; None: a value sees no others."""
    patch_of: Callable[[Node], bytes] = lambda node: b""
    """As `patch`, for another state."""
    own_tests: str = ""
    """The results of the tests that the state adds, in words; empty if it adds none or they are not run."""
    submission: Submit | None = None
    """How the state's author submitted it; None: it was not submitted."""
    known: Evaluation | None = None
    """The state's evaluation from an earlier measurement, whose model opinions are reused."""


class Value(Protocol):
    """Evaluates measured states. One object serves all workers of a run concurrently."""

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """Evaluate the state. Only its tests can make it solved; with an invalid report its value is 0.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: a model cannot be asked.
        """
        ...
