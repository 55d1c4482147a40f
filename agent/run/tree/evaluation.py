"""Evaluation: what a measured state is worth, as its node keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MANIPULATION = "Refused as a manipulation of the tests:"
"""The beginning of the notes of a state whose results cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A state's worth."""

    value: float
    """In [0, 1]; 1 only when solved."""
    solved: bool = False
    """Whether all goal tests pass and no test fails that passed in the root state."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The terms of the value by name, for display and the journal. Code reads the properties below."""
    notes: str = ""
    """Text for the policy that tries again from the same parent."""
    opinion: str = ""
    """What models say about the state; `notes` contains it, too."""
    reproduced_by: tuple[str, ...] = ()
    """Tests that the state adds, which fail without its change and pass with it."""
    return_to: str = ""
    """The digest of the state to continue from, chosen by a model that saw all states found until then; empty: no model
    chose."""

    @property
    def by_tests(self) -> float:
        """The value of the state by its tests alone, in [0, 1]."""
        return self.parts.get("tests", self.value)

    @property
    def progress(self) -> float:
        """The share of the goal tests that pass, in [0, 1]; the value if no goal test is known."""
        return self.parts.get("progress", self.value)

    @property
    def harm(self) -> float:
        """The share of the tests that passed in the root state and fail now, in [0, 1]."""
        return self.parts.get("harm", 0.0)

    @property
    def interest(self) -> float:
        """How interesting critics find the state, in [0, 1]; 0 if none was asked."""
        return self.parts.get("interest", 0.0)

    @property
    def dull(self) -> bool:
        """Whether the model that chooses states to return to finds nothing of interest in this one."""
        return bool(self.return_to) and not self.interest

    @property
    def expected(self) -> float | None:
        """The value that a model expected before the tests ran, in [0, 1]; None: no model was asked."""
        return self.parts.get("expected")

    def foreseen(self, expected: float | None) -> Evaluation:
        """Return the same evaluation with the expected value added."""
        return self if expected is None else replace(self, parts={**self.parts, "expected": expected})

    @property
    def accepted(self) -> bool:
        """Whether a critic accepts the state, and no test contradicts that."""
        return self.parts.get("accept", 0.0) >= 0.5

    @property
    def approved(self) -> bool:
        """Whether a critic accepts the state, even if it breaks tests; the goal tests pass."""
        return self.accepted or self.parts.get("approved", 0.0) >= 0.5

    @property
    def aborted(self) -> bool:
        """Whether critics want the line of work abandoned."""
        return self.parts.get("abort", 0.0) >= 0.5

    @property
    def reproduces(self) -> bool:
        """Whether a test that the state adds reproduces the issue."""
        return self.parts.get("reproduction", 0.0) > 0

    @property
    def shows_the_issue(self) -> bool:
        """Whether the state adds a test that shows the issue, and changes nothing else."""
        return self.parts.get("shows", 0.0) > 0

    @property
    def tampered(self) -> bool:
        """Whether the patch forges test results or disables tests."""
        return self.notes.startswith(MANIPULATION)
