"""A run that is cut short: what is left out, what it says, and what it can never say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.actions.comparison import stopped_early
from agent.analysis.report.summary import tally
from agent.measure import Outcome
from agent.measure.comparison import compare
from agent.measure.regressions import must_pass, regressions
from agent.measure.suite import run_suite
from tests.measuring import CALC, FIXED, GOAL, PROJECT, Lab

pytestmark = pytest.mark.namespace

MANY = "from calc import double\n\n\n" + "".join(
    f"def test_{n}():\n    assert double({n}) == {2 * n}\n\n\n" for n in range(6)
)
APART = "def test_apart():\n    pass\n"
HALVED = FIXED.replace("2 * a", "a")
LOOPS = FIXED.replace("return 2 * a", "while True:\n        pass")


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Lab(
        provider, tmp_path_factory.mktemp("repo"), {**PROJECT, "tests/test_apart.py": APART, "tests/test_many.py": MANY}
    )


@pytest.fixture(scope="module")
def measurer(lab):
    return lab.measurer()


@pytest.fixture
def cut(lab, measurer):
    """The report of a state by a run that may show so many regressions."""

    def cut(files, allowed, tests=()):
        limits = replace(measurer.rules.limits, must_pass=frozenset(must_pass(lab.baseline)), regressions=allowed)
        rules = replace(measurer.rules, limits=limits)
        return run_suite(lab.provider, lab.task, lab.state(files), lab.base, tests, rules)

    return cut


def many(*numbers):
    return tuple(f"tests/test_many.py::test_{n}" for n in numbers)


def test_a_run_ends_after_enough_regressions(lab, cut):
    report = cut({"calc.py": HALVED}, 2)
    assert report.valid
    assert not report.complete
    assert regressions(lab.baseline, report) == ("tests/test_calc.py::test_double", *many(1))
    assert report.left_out == 4
    assert tally(report) == "4 passed, 2 failed, 4 not run"
    assert len(report.outcomes) + report.left_out == report.collected


def test_a_run_without_so_many_regressions_is_whole(lab, cut):
    report = cut({"calc.py": HALVED}, 7)
    assert report.complete
    assert report.left_out == 0
    assert len(regressions(lab.baseline, report)) == 6


def test_tests_that_failed_before_end_no_run(cut):
    report = cut({"calc.py": CALC}, 1)
    assert report.complete
    assert report.failures == (GOAL,)


@pytest.mark.slow
def test_a_test_that_runs_out_of_time_is_a_regression(cut):
    report = cut({"calc.py": LOOPS}, 1)
    assert report.outcomes["tests/test_calc.py::test_double"] is Outcome.TIMEOUT
    assert report.left_out == 7


def test_a_file_that_cannot_be_imported_any_more_ends_the_run_before_it_begins(lab, cut):
    report = cut({"calc.py": "def add(a, b):\n    return a + b\n"}, 3)
    assert report.valid
    assert not report.complete
    assert len(regressions(lab.baseline, report)) == 8
    assert report.left_out == 1


def test_it_is_told_that_a_run_was_stopped_and_why(lab, cut):
    halved, unreadable = cut({"calc.py": HALVED}, 1), cut({"calc.py": "def add(a, b):\n    return a + b\n"}, 3)
    assert _early(lab, halved) == "The run was stopped after 1 newly broken test; 7 of the 10 tests were not run."
    assert _early(lab, unreadable) == "The run was stopped after 8 newly broken tests; 1 of the 10 tests was not run."
    assert _early(lab, cut({"calc.py": CALC}, 1)) == ""


def _early(lab, report):
    return stopped_early(compare(lab.baseline, report), report)


def test_named_tests_may_be_left_out_too(cut):
    report = cut({"calc.py": HALVED}, 1, many(1, 2, 3))
    assert report.valid
    assert report.left_out == 2
    assert set(report.outcomes) == set(many(1))


def test_a_run_that_is_cut_short_is_never_solved(lab, measurer, cut):
    evaluation, root = lab.evaluate(cut({"calc.py": HALVED}, 1))
    assert not evaluation.solved
    assert root.value < evaluation.value < 1
    assert "The run was stopped after" in evaluation.notes
