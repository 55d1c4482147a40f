"""Spectrum: which lines of the workspace each test executed, and how the test ended. Fault localisation reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.measure import Outcome

__all__ = ["Lines", "Spectrum"]

Lines = Mapping[str, tuple[int, ...]]
"""Per file (relative to the workspace, `/`-separated), the 1-based lines that were executed, sorted."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What one traced run of the tests executed. Test files and other protected files are left out."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Per test id, in the order of running."""
    executed: Mapping[str, Lines] = field(default_factory=dict)
    """Per test id: the lines that ran between the test's set-up and its tear-down, also when it timed out."""
    imported: Lines = field(default_factory=dict)
    """The lines that ran outside any test, mostly while modules were imported."""
    problem: str = ""
    """Why lines are missing, for people; empty when nothing is."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a journal."""
        return {
            "outcomes": {test: outcome.value for test, outcome in self.outcomes.items()},
            "executed": {test: _lists(lines) for test, lines in self.executed.items()},
            "imported": _lists(self.imported),
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spectrum:
        """What `to_json` wrote. Raises KeyError or ValueError when it did not."""
        return cls(
            outcomes={test: Outcome(value) for test, value in data["outcomes"].items()},
            executed={test: _tuples(lines) for test, lines in data["executed"].items()},
            imported=_tuples(data["imported"]),
            problem=data["problem"],
        )


def _lists(lines: Lines) -> dict[str, list[int]]:
    return {path: list(numbers) for path, numbers in lines.items()}


def _tuples(lines: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {path: tuple(numbers) for path, numbers in lines.items()}
