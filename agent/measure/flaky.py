"""Find flaky tests, which end differently in two runs of one state, and set them aside.

Invariant: a test that fails twice in a row is not flaky.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from agent.measure import Outcome, SuiteReport


def inconsistent(reports: Iterable[SuiteReport]) -> tuple[str, ...]:
    """Return the tests that did not end the same way in all of these runs of one state, in running order."""
    found: dict[str, None] = {}
    for first, second in pairwise(reports):
        ids = dict.fromkeys([*first.outcomes, *second.outcomes])
        found |= dict.fromkeys(test for test in ids if first.outcomes.get(test) is not second.outcomes.get(test))
    return tuple(found)


def with_retries(report: SuiteReport, again: SuiteReport, tests: Sequence[str]) -> SuiteReport:
    """Return the report, in which those of these failing tests that pass in a second run count as passed and flaky."""
    flaky = tuple(test for test in tests if again.passed(test))
    outcomes = {**report.outcomes, **dict.fromkeys(flaky, Outcome.PASSED)}
    return replace(report, outcomes=outcomes, flaky=flaky)
