"""What a measured state is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agent.measure import SuiteReport
    from agent.models import Ask
    from agent.run.tree.tree import Node
    from agent.task import Task

__all__ = ["MANIPULATION", "Case", "Evaluation", "Once", "Value"]

MANIPULATION = "Refused as a manipulation of the tests:"
"""How the notes of a state begin whose results cannot be trusted."""


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
    opinion: str = ""
    """What models say of the state, in words; it is in `notes`, too."""
    reproduced_by: tuple[str, ...] = ()
    """Tests that the state adds, which fail without its change and pass with it."""

    @property
    def by_tests(self) -> float:
        """What the state is worth by its tests alone, in [0, 1]."""
        return self.parts.get("tests", self.value)

    @property
    def tampered(self) -> bool:
        """Whether the patch forges or disables what the tests say."""
        return self.notes.startswith(MANIPULATION)

    @property
    def accepted(self) -> bool:
        """A critic wants nothing better, and no test speaks against it."""
        return self.parts.get("accept", 0.0) >= 0.5


Once = Callable[[str, Callable[[], Any]], Any]
"""What a run knows under a key, as JSON has it; found by the function the first time, and recorded."""


@dataclass(frozen=True, slots=True)
class Case:
    """A measured state, as whoever values it is shown it."""

    task: Task
    path: tuple[Node, ...]
    """From the root to the state's parent; empty for the root itself."""
    report: SuiteReport
    patch: Callable[[], bytes] = bytes
    """What the state changes in the base state, as a git patch."""
    ask: Ask | None = None
    """None: no model may be asked."""
    once: Once = field(default=lambda key, find: find())
    known: Evaluation | None = None
    """What the state was worth when it was measured before: what models said then is not asked again."""


class Value(Protocol):
    """Values measured states. One object serves all workers of a run, at once."""

    def evaluate(self, case: Case) -> Evaluation:
        """The worth of the state. Solved only by its tests, and worth 0 where the report is not valid.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: a model that has to be asked cannot be.
        """
        ...
