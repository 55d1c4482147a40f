"""How long test runs of a task may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of test runs in seconds, and their number of processes."""

    every_s: float = 20.0
    """If all tests take longer than this, states are measured by scopes."""
    whole_s: float = 100.0
    """Limit of the first run of all tests. Tests that it did not reach run when they are needed."""
    scope_s: float = 60.0
    """Limit of a run of a state's scope."""
    final_s: float = 900.0
    """Limit of the run of all tests before the final answer; 0: no such run when states are measured by scopes."""
    jobs: int = 1
    """Number of processes that run tests at the same time."""
