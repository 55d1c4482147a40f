"""Evaluation: what a measured state is worth, as its node keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MANIPULATION", "Evaluation"]

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
