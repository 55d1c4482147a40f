"""Timing: how long runs of the tests of a task may take."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Timing"]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long runs of the tests may take, in seconds, and how many processes they have."""

    every_s: float = 20.0
    """All tests, for them to be run in every state; where they take longer, states are measured by scopes."""
    whole_s: float = 100.0
    """The first run of all tests. It is ended then, and what it did not come to is run when it is needed."""
    scope_s: float = 60.0
    """A run of the scope of a state."""
    final_s: float = 900.0
    """The run of all tests before an answer is given; 0: none is made where states are measured by scopes."""
    jobs: int = 1
    """Processes that run tests at the same time."""
