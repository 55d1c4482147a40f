"""pytest rewrites the assertions of a test file once, and never longer than it may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.measure.suite import GENEROUS, rules_for, run_suite
from tests.measuring import CONFTEST, PYTEST, Lab
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

COUNTS = f"""{CONFTEST}
import os, time
import pytest
from _pytest.assertion import rewrite

original, names = rewrite.rewrite_asserts, []

def counted(tree, source, path, config):
    names.append(os.path.basename(path))
    time.sleep(float(os.environ.get("SLOW_S", "0")))
    return original(tree, source, path, config)

rewrite.rewrite_asserts = counted

@pytest.fixture
def rewritten():
    return sorted(names)
"""
FILES = {
    "conftest.py": COUNTS,
    "calc.py": "LEFT, RIGHT = 1, 2\n",
    "tests/test_a.py": "from calc import LEFT, RIGHT\n\n\ndef test_names(rewritten):\n    assert rewritten == []\n",
    "tests/test_b.py": "import calc\n\n\ndef test_values():\n    assert calc.LEFT == calc.RIGHT\n",
}
NAMES, VALUES = "tests/test_a.py::test_names", "tests/test_b.py::test_values"


@pytest.fixture
def lab(provider, tmp_path):
    return Lab(provider, tmp_path, FILES)


def run(lab, snapshot, **limits):
    rules = rules_for(lab.provider, lab.task, lab.base)
    rules = replace(rules, limits=replace(GENEROUS, **limits))
    report = run_suite(lab.provider, lab.task, snapshot, lab.base, (), rules)
    assert report.valid, report.problem
    return report


@pytest.mark.parametrize("jobs", slow_but([1], [1, 2]))
def test_a_run_takes_what_a_run_of_the_base_state_rewrote(lab, jobs):
    first = run(lab, lab.base, jobs=jobs)
    assert "test_a.py" in first.messages[NAMES]
    changed = lab.state({"calc.py": "LEFT, RIGHT = 3, 4\n"})
    second = run(lab, changed, jobs=jobs)
    assert second.passed(NAMES)
    assert "assert 3 == 4" in second.messages[VALUES]


def test_a_changed_file_is_rewritten_again(provider, tmp_path):
    checks = "import calc\n\n\ndef check():\n    assert calc.LEFT == calc.RIGHT\n"
    files = {"conftest.py": f"{COUNTS}\npytest.register_assert_rewrite('checks')\n", "checks.py": checks}
    tests = "from checks import check\n\n\ndef test_values(rewritten):\n    assert rewritten == []\n    check()\n"
    lab = Lab(provider, tmp_path, {**FILES, **files, "tests/test_b.py": tests})
    run(lab, lab.base)
    assert "assert 1 == 2" in run(lab, lab.base).messages[VALUES]
    other = lab.state({"checks.py": checks.replace("==", ">=")})
    assert "['checks.py']" in run(lab, other).messages[VALUES]


def test_only_runs_of_the_base_state_are_believed(lab):
    run(lab, lab.state({"calc.py": "LEFT, RIGHT = 3, 4\n"}))
    assert "['test_a.py', 'test_b.py']" in run(lab, lab.base).messages[NAMES]


def test_files_that_it_would_take_too_long_to_rewrite_keep_their_plain_assertions(provider, tmp_path):
    lab = Lab(provider, tmp_path, FILES, f"SLOW_S=4 {PYTEST}")
    report = run(lab, lab.base, run_s=10.0)
    assert "['test_a.py']" in report.messages[NAMES]
    assert "assert calc.LEFT == calc.RIGHT" in report.messages[VALUES]
    assert "1 == 2" not in report.messages[VALUES]


@pytest.mark.slow
def test_a_state_has_less_time_for_it_than_the_base_state_whose_files_are_kept(provider, tmp_path):
    lab = Lab(provider, tmp_path, FILES, f"SLOW_S=1 {PYTEST}")
    report = run(lab, lab.state({"calc.py": "LEFT, RIGHT = 3, 4\n"}), run_s=10.0)
    assert "['test_a.py']" in report.messages[NAMES]
    assert "3 == 4" not in report.messages[VALUES]
    assert "1 == 2" in run(lab, lab.base, run_s=10.0).messages[VALUES]


def test_a_run_of_the_base_state_that_is_killed_leaves_nothing(provider, tmp_path):
    lab = Lab(provider, tmp_path, FILES, f"{PYTEST}; sleep 1000")
    rules = rules_for(lab.provider, lab.task, lab.base)
    rules = replace(rules, limits=replace(GENEROUS, run_s=1.0, grace_s=1.0))
    assert run_suite(lab.provider, lab.task, lab.base, lab.base, (), rules).timed_out


@pytest.mark.slow
def test_tests_of_pytest_itself_meet_its_own_function(provider, tmp_path):
    own = "from _pytest.assertion import rewrite\n\n\ndef test_own():\n"
    own += "    assert rewrite._rewrite_test.__module__ == '_pytest.assertion.rewrite'\n"
    lab = Lab(provider, tmp_path, {"conftest.py": CONFTEST, "tests/test_own.py": own})
    assert run(lab, lab.base).passed("tests/test_own.py::test_own")
