"""Time limits for the test runs of a task."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Timing"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits in seconds, and the number of processes."""

    every_s: float = 20.0
    """Up to this duration all tests are run in every state; above it, states are measured by scopes."""
    whole_s: float = 100.0
    """The first run of all tests. It is ended then, and tests that it did not get to are run when they are needed."""
    scope_s: float = 60.0
    """A run of the scope of a state."""
    final_s: float = 900.0
    """The final run of all tests; 0: none, where states are measured by scopes."""
    jobs: int = 1
    """Processes that run tests at the same time."""
