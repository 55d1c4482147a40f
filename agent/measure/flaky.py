"""Flaky tests: those that two runs of one state report differently, and how they are treated.

Invariant: a test that fails twice in a row is not flaky.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from agent.measure import Outcome, SuiteReport


def inconsistent(reports: Iterable[SuiteReport]) -> tuple[str, ...]:
    """The tests that did not end the same way in all of these runs of one state, in running order."""
    found: dict[str, None] = {}
    for one, other in pairwise(reports):
        ids = dict.fromkeys([*one.outcomes, *other.outcomes])
        found |= dict.fromkeys(test for test in ids if one.outcomes.get(test) is not other.outcomes.get(test))
    return tuple(found)


def with_retries(report: SuiteReport, again: SuiteReport, tests: Sequence[str]) -> SuiteReport:
    """The report, with these failing tests counted as passed and flaky where they pass in a second run."""
    flaky = tuple(test for test in tests if again.passed(test))
    outcomes = {**report.outcomes, **dict.fromkeys(flaky, Outcome.PASSED)}
    return replace(report, outcomes=outcomes, flaky=flaky)
