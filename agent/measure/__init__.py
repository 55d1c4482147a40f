"""Running a task's tests and saying what they said, per test and in a way that candidate code cannot talk round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Outcome", "SuiteReport"]


class Outcome(Enum):
    """How one test ended. Everything but PASSED and SKIPPED is a failure; expected failures count as PASSED,
    an unexpected pass of a strict xfail as FAILED."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What one run of the tests said."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Per test id, in the order of running."""
    duration_s: float = 0.0
    collected: int = 0
    """Tests that the runner found, run or not."""
    complete: bool = True
    """Every test was asked for. False: only some (the goal tests) were."""
    valid: bool = True
    """The runner came to its end, collected something, and its exit code agrees with the outcomes."""
    problem: str = ""
    """Why it is not valid, for people."""
    exit_code: int = 0
    timed_out: bool = False
    adapter: str = "pytest"
    """What read the results: `pytest`, or `exit-code`, the weakest."""
    output: str = ""
    """The tail of what the run printed, limited."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds per test id, where the runner tells."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The failure text per failed test id, limited."""

    def passed(self, test_id: str) -> bool:
        """Whether the test ran and passed in a valid run; a skipped test has not passed."""
        return self.valid and self.outcomes.get(test_id) is Outcome.PASSED

    @property
    def failures(self) -> tuple[str, ...]:
        """Ids of the tests that failed, in the order of running."""
        return tuple(t for t, o in self.outcomes.items() if o not in (Outcome.PASSED, Outcome.SKIPPED))

    @property
    def passes(self) -> tuple[str, ...]:
        """Ids of the tests that passed, in the order of running; none when the run is not valid."""
        return tuple(t for t, o in self.outcomes.items() if o is Outcome.PASSED) if self.valid else ()
