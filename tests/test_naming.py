"""Naming tests: what a policy may call them, and tests that the task's own command does not run."""

from __future__ import annotations

import pytest

from agent.actions import Debug
from agent.errors import MeasureError
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.measure.naming import Names
from tests.measuring import CALC, FIXED, GOAL, PROJECT, PYTEST, Lab

BASE = SuiteReport(
    dict.fromkeys(
        (
            "tests/test_a.py::test_one",
            "tests/test_a.py::TestIt::test_two[a/b.py]",
            "tests/test_a.py::TestIt::test_two[c]",
            "tests/unit/test_b.py::test_one",
            "tests/unit/test_c.py::test_three",
            "top.py::test_four",
        ),
        Outcome.PASSED,
    )
)
OWN = "tests/test_own.py"
NAMES = Names(BASE, {"other/test_d.py": "other/test_d.py", "/repo/other/test_d.py": "other/test_d.py"}.get, [OWN])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tests/test_a.py::test_one", "tests/test_a.py::test_one"),
        (" ./tests/test_a.py::test_one ", "tests/test_a.py::test_one"),
        ("tests//test_a.py", "tests/test_a.py"),
        ("test_a.py::test_one", "tests/test_a.py::test_one"),
        ("/repo/tests/test_a.py::test_one", "tests/test_a.py::test_one"),
        ("repo/tests/test_a.py::TestIt", "tests/test_a.py::TestIt"),
        ("tests.test_a.TestIt.test_two", "tests/test_a.py::TestIt::test_two"),
        ("tests.test_a::TestIt::test_two", "tests/test_a.py::TestIt::test_two"),
        ("tests/test_a.py::TestIt::test_two[a/b.py]", "tests/test_a.py::TestIt::test_two[a/b.py]"),
        ("tests/test_a.py::TestIt::test_two[new]", "tests/test_a.py::TestIt::test_two[new]"),
        ("TestIt::test_two[c]", "tests/test_a.py::TestIt::test_two[c]"),
        ("test_three", "tests/unit/test_c.py::test_three"),
        ("unit.test_c", "tests/unit/test_c.py"),
        ("tests/test_own.py::test_new", "tests/test_own.py::test_new"),
        ("test_own.py::test_new", "tests/test_own.py::test_new"),
        ("/repo/tests/test_own.py", "tests/test_own.py"),
        ("tests.test_own.TestNew.test_new", "tests/test_own.py::TestNew::test_new"),
        ("other/test_d.py::test_x", "other/test_d.py::test_x"),
        ("/repo/other/test_d.py", "other/test_d.py"),
    ],
)
def test_a_test_is_found_by_any_name_that_leaves_no_doubt(name, meant):
    assert NAMES.found(name) == (meant,)


@pytest.mark.parametrize("folder", ["tests/unit", "./tests/unit/", "/repo/tests/unit"])
def test_a_folder_stands_for_the_files_in_it(folder):
    assert NAMES.found(folder) == ("tests/unit/test_b.py", "tests/unit/test_c.py")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "test_one",
            "'test_one' is ambiguous: it may be tests/test_a.py::test_one or tests/unit/test_b.py::test_one",
        ),
        (
            "tests/test_a.py::test_on",
            "there is no test 'tests/test_a.py::test_on'; near it are tests/test_a.py::test_one",
        ),
        ("tests/test_b.py::test_one", "near it are tests/test_a.py::test_one, tests/unit/test_b.py::test_one"),
        ("tests/test_e.py", "there is no test 'tests/test_e.py'; near it are tests/"),
    ],
)
def test_a_name_in_doubt_is_refused_with_what_is_near_it(name, says):
    with pytest.raises(MeasureError) as raised:
        NAMES.found(name)
    assert says in str(raised.value)


OWN_TESTS = "from calc import add\n\n\ndef test_sum():\n    assert add(2, 2) == 4\n"
OTHER = "from calc import double\n\n\ndef test_double_again():\n    assert double(1) == 2\n"


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    files = {**PROJECT, "tests/test_other.py": OTHER}
    command = f"{PYTEST} tests/test_calc.py -k 'not double' --deselect tests/test_calc.py::test_x"
    return Lab(provider, tmp_path_factory.mktemp("repo"), files, command)


@pytest.fixture(scope="module")
def scorer(lab):
    lab.measurer()
    return StagedScorer(lab.provider, lab.task, lab.base, lab.baseline, PassingTests())


def ends(report):
    return {test: outcome.value for test, outcome in report.outcomes.items()}


@pytest.mark.namespace
class TestTestsThatTheCommandDoesNotRun:
    def test_are_run_by_their_path_and_it_is_said_how(self, lab, scorer):
        state = lab.state({"calc.py": FIXED, "tests/test_new.py": OWN_TESTS})
        report, _ = scorer.run_tests(state, ("tests/test_new.py",))
        assert report.valid
        assert ends(report) == {"tests/test_new.py::test_sum": "passed"}
        assert report.command.endswith("(with tests/test_new.py instead of its own tests)")

    def test_reproduce_an_issue_whichever_files_the_command_names(self, lab, scorer):
        finding = scorer.own.look(lab.state({"calc.py": FIXED, "tests/test_new.py": OWN_TESTS}))
        assert finding.shown == ("tests/test_new.py::test_sum",)

    def test_may_be_in_files_that_were_there_before(self, lab, scorer):
        report, _ = scorer.run_tests(lab.base, ("tests/test_other.py::test_double_again",))
        assert ends(report) == {"tests/test_other.py::test_double_again": "passed"}

    def test_run_together_with_those_that_it_runs(self, lab, scorer):
        state = lab.state({"tests/test_new.py": OWN_TESTS})
        report, _ = scorer.run_tests(state, ("./tests/test_new.py", "test_add"))
        assert ends(report) == {"tests/test_new.py::test_sum": "failed", GOAL: "failed"}

    def test_can_be_watched(self, lab, scorer):
        state = lab.state({"calc.py": CALC, "tests/test_new.py": OWN_TESTS})
        assert "a=2, b=2" in scorer.debug(state, Debug("tests.test_new.test_sum", ("add",)))

    def test_that_hold_no_test_are_told_with_the_command(self, lab, scorer):
        finding = scorer.own.look(lab.state({"tests/test_new.py": "x = 1\n"}))
        assert "no tests were collected. What was run: " in finding.problem
        assert "with tests/test_new.py instead of" in finding.problem


@pytest.mark.namespace
def test_tests_of_the_command_are_run_by_it(lab, scorer):
    report, _ = scorer.run_tests(lab.base, (f"/somewhere/{GOAL}",))
    assert (ends(report), report.command) == ({GOAL: "failed"}, "")
