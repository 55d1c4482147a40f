"""Runs a task's tests and reports their outcomes, one by one, so that candidate code cannot forge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice

from agent.measure.ids import file_of, holds

__all__ = ["Outcome", "SuiteReport"]


class Outcome(Enum):
    """How one test ended. Everything but PASSED and SKIPPED is a failure. Expected failures count as PASSED, and so
    do unexpected passes, which a report lists if they are strict. Journals of earlier versions have the latter as
    FAILED."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


WORST_FIRST = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.FAILED, Outcome.PASSED)


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The result of one run of the tests."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By test id, in the order of running."""
    duration_s: float = 0.0
    collected: int = 0
    """How many tests the runner found, run or not."""
    complete: bool = True
    """All tests were asked for, and none was left out. False: only some were, such as the goal tests, or the run was
    cut short."""
    left_out: int = 0
    """Tests that were not run, since enough had failed that passed in the root state."""
    late: Mapping[str, int] = field(default_factory=dict)
    """How many tests were not run since the time of the run was up, by their file."""
    asked: tuple[str, ...] = ()
    """The tests or test files that were asked for; empty: all."""
    scope: str = ""
    """In words, which part of all tests this is, where a state is measured by the tests that its change can reach."""
    valid: bool = True
    """The runner came to its end, collected something, and its exit code agrees with the outcomes."""
    problem: str = ""
    """Why the report is not valid."""
    exit_code: int = 0
    timed_out: bool = False
    adapter: str = "pytest"
    """What read the results: `pytest`, the name of an adapter, or `exit-code`, the weakest."""
    command: str = ""
    """What was run, if not the task's own command."""
    output: str = ""
    """The end of what the run printed."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds by test id, if the runner reports them."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The text of each failure by test id, shortened."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Test ids by the first line of the test's documentation, if the runner reports it and no other test has the
    same."""
    start: str = "new"
    """How the run began: in a `new` process, or copied from a template that had imported pytest and its `packages`, or
    had collected a `session` of the root state."""
    unsafe: tuple[str, ...] | None = None
    """Root state only: tests that end differently in a copied run, and are never run in one. None: not known."""
    flaky: tuple[str, ...] = ()
    """Root state only: tests that ended differently in two runs. They decide nothing."""
    first: int | None = None
    """Root state only: how many of `outcomes`, from the beginning, its first run got to, if others were run later;
    None: all of them."""
    unexpected: tuple[str, ...] = ()
    """Tests that passed although they are marked as strict expected failures: the runner counts them as failed."""

    @property
    def conclusive(self) -> bool:
        """Whether the run covers all tests, or all in the scope of the state, except those that it had no time for: it
        was not cut short because tests broke."""
        return self.complete or (bool(self.scope) and not self.left_out)

    @property
    def at_first(self) -> SuiteReport:
        """The report of the first run, before more tests were run."""
        if self.first is None:
            return self
        return replace(self, outcomes=dict(islice(self.outcomes.items(), self.first)), first=None)

    def passed(self, test_id: str) -> bool:
        """Whether the test ran and passed in a valid run; a skipped test has not passed."""
        return self.valid and self.outcome(test_id) is Outcome.PASSED

    def outcome(self, test_id: str) -> Outcome | None:
        """How the test ended, or the worst outcome of the tests that `test_id` holds as their file, class or function.
        ERROR if its file could not be imported; None if the run says nothing about it."""
        if test_id in self.outcomes:
            return self.outcomes[test_id]
        if self.outcomes.get(file_of(test_id)) is Outcome.ERROR:
            return Outcome.ERROR
        inside = {outcome for other, outcome in self.outcomes.items() if holds(test_id, other)}
        return next((o for o in WORST_FIRST if o in inside), Outcome.SKIPPED) if inside else None

    @property
    def failures(self) -> tuple[str, ...]:
        """Ids of the tests that failed, in the order of running."""
        return tuple(t for t, o in self.outcomes.items() if o not in (Outcome.PASSED, Outcome.SKIPPED))

    @property
    def passes(self) -> tuple[str, ...]:
        """Ids of the tests that passed, in the order of running; none when the run is not valid."""
        return tuple(t for t, o in self.outcomes.items() if o is Outcome.PASSED) if self.valid else ()
