"""Running a task's tests and saying what they said, per test and in a way that candidate code cannot talk round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice

from agent.measure.ids import file_of, holds

__all__ = ["Outcome", "SuiteReport"]


class Outcome(Enum):
    """How one test ended. Everything but PASSED and SKIPPED is a failure; expected failures count as PASSED, and so do
    unexpected passes, which a report lists where they are strict. Journals of before have the latter as FAILED."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


WORST_FIRST = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.FAILED, Outcome.PASSED)


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What one run of the tests said."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Per test id, in the order of running."""
    duration_s: float = 0.0
    collected: int = 0
    """Tests that the runner found, run or not."""
    complete: bool = True
    """Every test was asked for and none left out. False: only some (the goal tests) were, or the run was cut short."""
    left_out: int = 0
    """Tests that were not run any more, because enough had failed that passed in the base state."""
    late: Mapping[str, int] = field(default_factory=dict)
    """How many tests, by their file, were not run because the time of the run was up."""
    asked: tuple[str, ...] = ()
    """The tests, or the files of tests, that were asked for; empty where all were."""
    scope: str = ""
    """Which part of all tests this is, in words, where a state is measured by the part that its change can reach."""
    valid: bool = True
    """The runner came to its end, collected something, and its exit code agrees with the outcomes."""
    problem: str = ""
    """Why it is not valid, for people."""
    exit_code: int = 0
    timed_out: bool = False
    adapter: str = "pytest"
    """What read the results: `pytest`, the name of an adapter, or `exit-code`, the weakest."""
    command: str = ""
    """What was run, where that is not the task's own command, for people."""
    output: str = ""
    """The tail of what the run printed, limited."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds per test id, where the runner tells."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """The failure text per failed test id, limited."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Test id by the first line of the test's documentation, where the runner tells that and no other test has it."""
    start: str = "new"
    """How the run began: in a `new` process, or copied from a template, with pytest and its `packages` imported or in
    the midst of a `session` of the base state."""
    unsafe: tuple[str, ...] | None = None
    """Of the base state only: tests that end differently in a copied run, so that they are never copied. None: this was
    not looked at."""
    flaky: tuple[str, ...] = ()
    """Of the base state only: tests that ended differently in two runs of it. They decide nothing."""
    first: int | None = None
    """Of the base state only: to how many tests, the first of `outcomes`, its first run came, where others were run
    later; None: to all of them."""
    unexpected: tuple[str, ...] = ()
    """Tests that passed although they are marked as strict expected failures: for the runner they failed."""

    @property
    def conclusive(self) -> bool:
        """Whether the run was of all tests, or of all in the scope of the state, but for those that it had no time for:
        it was not cut short because tests broke."""
        return self.complete or (bool(self.scope) and not self.left_out)

    @property
    def at_first(self) -> SuiteReport:
        """What was known before more tests were run than in the first run."""
        if self.first is None:
            return self
        return replace(self, outcomes=dict(islice(self.outcomes.items(), self.first)), first=None)

    def passed(self, test_id: str) -> bool:
        """Whether the test ran and passed in a valid run; a skipped test has not passed."""
        return self.valid and self.outcome(test_id) is Outcome.PASSED

    def outcome(self, test_id: str) -> Outcome | None:
        """How the test ended, or the worst end of the tests that `test_id` holds as their file, class or function.

        ERROR when its file could not be imported; None when the run says nothing of it.
        """
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
