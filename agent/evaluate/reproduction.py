"""Reproductions: whether tests that a state adds show the issue, and what that is worth.

Rule: such a test counts if it fails twice on the base state, for a reason that the issue can give: in the tested code,
in an assertion, or because a name is missing that the issue names. It guides a search in which no test fails at first,
and decides nothing: no state is solved by it, and it adds less to a value than goal tests do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.actions.excerpt import excerpt
from agent.counting import counted, first_of
from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of
from agent.measure.messages import error_of, places_of
from agent.run.cross_tests import Cell
from agent.run.tree.evaluation import Evaluation

WORTH = 0.3
"""What a reproduction that passes adds to the value of a state that breaks nothing: a third of what goal tests can
add."""
ALONE = 0.1
"""What a reproduction adds by itself, in a state that changes nothing else."""
MOST = 0.9
"""The highest value of an unsolved state."""
NOTED = 3
NAMED = 10
"""How many tests are named to their author before there is a change: each has to show the issue."""
MESSAGE_BYTES = 1_500

_OWN_FAULT = re.compile(r"(?:\w+\.)*(?:ImportError|ModuleNotFoundError|NameError|SyntaxError)\b")
_MISSING = re.compile(
    r"(?:cannot import name|No module named|export named|undefined:|cannot find \w+|symbol:\s+\w+) [`'\"]?([\w.]+)"
)
"""The name that a failed import or a compiler misses."""

Run = Callable[[], SuiteReport]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the tests that a state added."""

    shown: tuple[str, ...] = ()
    """The tests that fail without the state's change and pass with it."""
    alone: tuple[str, ...] = ()
    """The tests that fail in a state that changes nothing else: they show the issue, and nothing repairs it yet."""
    failing: tuple[str, ...] = ()
    """The tests that fail without the change and do not pass with it."""
    problem: str = ""
    """Why no test shows the issue, for the author of the tests; for tests in `alone`, how they fail."""
    others: int = 0
    """How many of the other tests that the state added pass, if some are `shown`."""
    runs: int = 0
    """How many test runs this took."""

    @property
    def text(self) -> str:
        """The finding in words, for the author of the tests."""
        if self.shown:
            shown = first_of(self.shown, NOTED)
            passes = f"A test that you wrote or changed reproduces the issue, and passes with your change: {shown}"
            others = counted(self.others, "other new test passes", "other new tests pass")
            return f"{passes}\n{others}." if self.others else passes
        return f"{self.headline}\n{self.problem}" if self.alone else self.problem

    @property
    def headline(self) -> str:
        """The first line in words, without how tests fail."""
        return (
            f"Your own test shows the issue, and waits for the change: {first_of(self.alone, NAMED)}"
            if self.alone
            else ""
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads reports of tests that a state added to the base state."""

    statement: str
    """The issue."""
    baseline: SuiteReport
    """The report of the base state. A test that fails there shows nothing new."""

    def found(self, before: Run, after: Run | None, once_more: Run, *, tried: bool = True) -> Finding:
        """The finding from test runs on the unchanged code, with the change, and on the unchanged code once more. Each
        run is made only if the runs before it have not decided the result. `after` is None for a state that adds only
        tests. Not `tried`: the state changes no file that was there before."""
        first = before()
        failing = self._failures(first)
        if not failing:
            return Finding(problem=self._no_failure(first))
        why = excerpt(first.messages.get(failing[0], ""), MESSAGE_BYTES)[0]
        changed = after() if after else first
        still = [test for test in failing if not changed.passed(test)]
        if still and tried:
            return Finding(failing=tuple(still), problem=_unrepaired(still, first, changed))
        second = self._failures(once_more())
        if unsteady := [test for test in failing if test not in second]:
            problem = f"{unsteady[0]} failed on the unchanged code and then did not: make it fail each time"
            return Finding(problem=problem)
        if still:
            return Finding(alone=tuple(still), problem=why)
        known = {*failing, *self.baseline.outcomes}
        return Finding(tuple(failing), others=sum(test not in known for test in changed.passes))

    def begun(self, report: SuiteReport, test: str) -> bool:
        """Whether a failure comes from the tested code, not from an import or a name in the test itself, unless the
        issue names what is missing."""
        message = report.messages.get(test, "")
        places = places_of(message)
        raised_there = bool(places) and places[-1][0].endswith(file_of(test))
        own_fault = raised_there and bool(_OWN_FAULT.match(error_of(message)))
        not_reached = report.adapter == "pytest" and report.outcomes.get(test) is Outcome.ERROR
        if own_fault or not_reached:
            return self._misses_what_the_issue_names(message)
        return True

    def end(self, report: SuiteReport, test: str) -> Cell:
        """How a test ended. A failed import or an unknown name in the test itself says nothing about the state."""
        outcome = report.outcome(test) if report.valid else None
        if outcome in (None, Outcome.PASSED, Outcome.SKIPPED):
            return "passed" if outcome is Outcome.PASSED else "invalid"
        return "failed" if self.begun(report, test if test in report.outcomes else file_of(test)) else "invalid"

    def _failures(self, report: SuiteReport) -> list[str]:
        """The tests that fail in the way a reproduction fails."""
        failed = (test for test in report.failures if report.outcomes[test] in (Outcome.FAILED, Outcome.ERROR))
        return [test for test in failed if report.valid and not self._failed_before(test) and self.begun(report, test)]

    def _failed_before(self, test: str) -> bool:
        return test in self.baseline.failures

    def _misses_what_the_issue_names(self, message: str) -> bool:
        names = {found.strip(".").rpartition(".")[2] for found in _MISSING.findall(message)}
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.statement) for name in names)

    def _no_failure(self, before: SuiteReport) -> str:
        """The problem to report if none of a state's own tests fails on the base state in the way a reproduction
        fails."""
        broken = [test for test in before.failures if not self._failed_before(test)]
        if broken:
            why = excerpt(before.messages.get(broken[0], ""), MESSAGE_BYTES)[0]
            begins = f"{broken[0]} does not get as far as to fail on the unchanged code, so that it says nothing of it"
            return f"{begins}:\n{why}"
        if not before.valid:
            run = f". What was run: {before.command}" if before.command else ""
            return f"Your own tests cannot be run on the unchanged code: {before.problem}{run}"
        files = ", ".join(dict.fromkeys(map(file_of, before.outcomes)))
        return (
            f"{files or 'your own test file'} passes without your change too: it does not show what the issue describes"
        )


def _unrepaired(tests: Sequence[str], without: SuiteReport, changed: SuiteReport) -> str:
    """How tests fail with the change: the first in full, each other one by the line that says what went wrong."""
    first, *others = tests
    message = changed.messages.get(first) or changed.messages.get(file_of(first), "")
    why = excerpt(message or changed.problem, MESSAGE_BYTES)[0]
    same = not message or error_of(message) == error_of(without.messages.get(first, ""))
    how = "as it does without" if same else "and with another message than without"
    errors = {test: error_of(changed.messages.get(test, "")) for test in others[:NOTED]}
    also = [f"{test} fails, too: {error}" if error else f"{test} fails, too." for test, error in errors.items()]
    rest = len(others) - NOTED
    more = [f"{counted(rest, 'more of your tests fails', 'more of your tests fail')}."] if rest > 0 else []
    return "\n".join([f"{first} fails with your change {how}:\n{why}", *also, *more])


def valued(evaluation: Evaluation, finding: Finding | None) -> Evaluation:
    """The evaluation of a state with this finding, which may raise the value but never solves the state."""
    if finding is None or evaluation.solved:
        return evaluation
    worth = (WORTH if finding.shown else ALONE if finding.alone else 0.0) * (1.0 - evaluation.harm)
    parts = {"reproduction": float(bool(finding.shown))} | ({"shows": 1.0} if finding.alone else {})
    return replace(
        evaluation,
        value=max(evaluation.value, min(MOST, evaluation.value + worth)),
        parts={**evaluation.parts, **parts},
        notes=f"{evaluation.notes}\n{finding.text}".strip(),
        reproduced_by=finding.shown,
    )
