"""A strict gate lets a search go on from nothing but strict improvements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.gate import improves_strictly
from agent.measure import Outcome, SuiteReport
from tests.trees import node


def report(valid=True, **outcomes):
    return SuiteReport({test: Outcome[outcome] for test, outcome in outcomes.items()}, valid=valid)


ROOT = replace(node(0), report=report(a="FAILED", b="FAILED", c="PASSED"))
HALF = replace(node(1, 0), report=report(a="PASSED", b="FAILED"))


@pytest.mark.parametrize(
    ("path", "child", "improves"),
    [
        ((ROOT,), report(a="PASSED", b="FAILED"), True),
        ((ROOT,), report(a="FAILED", b="FAILED", c="PASSED"), False),
        ((ROOT,), report(a="PASSED", b="PASSED", c="FAILED"), False),
        ((ROOT,), report(a="PASSED", b="PASSED", c="TIMEOUT"), False),
        ((ROOT,), report(valid=False, a="PASSED", b="PASSED"), False),
        ((ROOT, HALF), report(a="PASSED", b="FAILED"), False),
        ((ROOT, HALF), report(a="FAILED", b="PASSED"), False),
        ((ROOT, HALF), report(a="PASSED", b="PASSED", c="FAILED"), False),
        ((ROOT, HALF), report(a="PASSED", b="PASSED", c="PASSED"), True),
        ((ROOT,), report(a="FAILED", b="FAILED", c="PASSED", made_up="PASSED"), False),
        ((ROOT,), report(a="PASSED", b="ERROR", c="SKIPPED"), True),
    ],
)
def test_more_tests_pass_than_in_any_state_before_and_none_breaks(path, child, improves):
    assert improves_strictly(path, child) is improves
