"""Run a task's tests and report each result, in a way that candidate code cannot manipulate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice

from agent.measure.ids import file_of, holds

__all__ = ["Outcome", "SuiteReport"]


class Outcome(Enum):
    """How one test ended. Every outcome except PASSED and SKIPPED is a failure. Expected failures and unexpected passes
    count as PASSED; a report lists the unexpected passes of tests marked as strict. Older journals record unexpected
    passes as FAILED."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"

    @property
    def failed(self) -> bool:
        """Whether the outcome is a failure."""
        return self not in (Outcome.PASSED, Outcome.SKIPPED)


WORST_FIRST = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.FAILED, Outcome.PASSED)


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The result of one test run."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Outcome by test id, in running order."""
    duration_s: float = 0.0
    collected: int = 0
    """Tests that the runner found, whether they ran or not."""
    complete: bool = True
    """Whether all tests were requested and none was left out. False if only some were requested (the goal tests), or if
    the run was cut short."""
    left_out: int = 0
    """Number of tests that did not run because there were enough regressions already."""
    late: Mapping[str, int] = field(default_factory=dict)
    """By file, the number of tests that did not run because the time was up."""
    asked: tuple[str, ...] = ()
    """The tests, or test files, that were requested; empty: all."""
    scope: str = ""
    """If the state was measured by scope: which tests ran, in words for people."""
    valid: bool = True
    """Whether the runner finished and collected something, and its exit code agrees with the outcomes."""
    problem: str = ""
    """Why the report is not valid, for people."""
    exit_code: int = 0
    timed_out: bool = False
    adapter: str = "pytest"
    """How the results were read: `pytest`, the name of an adapter, or `exit-code`, the weakest evidence."""
    command: str = ""
    """The command, for people, if it differs from the task's own."""
    output: str = ""
    """The last output of the run, limited."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds by test id, if the runner reports them."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Failure text by id of the failed test, limited."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Test id by the first line of the test's documentation, if the runner reports that line and it is unique."""
    start: str = "new"
    """How the run started: in a `new` process, or as a copy of a template, either after pytest and its `packages` were
    imported or in the middle of a `session` of the base state."""
    unsafe: tuple[str, ...] | None = None
    """Base state only: tests that end differently in a copied run and are therefore never copied. None: not checked."""
    flaky: tuple[str, ...] = ()
    """Base state only: tests that ended differently in two runs. No decision depends on them."""
    first: int | None = None
    """Base state only: how many of `outcomes`, from the beginning, come from the first run; None: all."""
    unexpected: tuple[str, ...] = ()
    """Tests that passed although marked as strict expected failures; the runner reports them as failed."""

    copies: Mapping[str, str] = field(default_factory=dict)
    """Runs of all tests only: packages of the workspace that the tests imported from an installed copy instead, each
    with the file of that copy."""

    @property
    def conclusive(self) -> bool:
        """Whether the run covered all tests or the whole scope, except tests that it had no time for, and was not cut
        short by regressions."""
        return self.complete or (bool(self.scope) and not self.left_out)

    @property
    def at_first(self) -> SuiteReport:
        """The report without the tests that only later runs reached."""
        if self.first is None:
            return self
        return replace(self, outcomes=dict(islice(self.outcomes.items(), self.first)), first=None)

    def passed(self, test_id: str) -> bool:
        """Whether the test ran and passed in a valid run; a skipped test did not pass."""
        return self.valid and self.outcome(test_id) is Outcome.PASSED

    def outcome(self, test_id: str) -> Outcome | None:
        """Return how the test ended; for a file, class or function, the worst outcome of its tests.

        ERROR if its file could not be imported; None if the report does not cover it.
        """
        if test_id in self.outcomes:
            return self.outcomes[test_id]
        if self.outcomes.get(file_of(test_id)) is Outcome.ERROR:
            return Outcome.ERROR
        inside = {outcome for other, outcome in self.outcomes.items() if holds(test_id, other)}
        return next((o for o in WORST_FIRST if o in inside), Outcome.SKIPPED) if inside else None

    @property
    def failures(self) -> tuple[str, ...]:
        """Ids of the tests that failed, in running order."""
        return tuple(t for t, o in self.outcomes.items() if o.failed)

    @property
    def passes(self) -> tuple[str, ...]:
        """Ids of the tests that passed, in running order; none if the run is not valid."""
        return tuple(t for t, o in self.outcomes.items() if o is Outcome.PASSED) if self.valid else ()
