"""What a patch may do to the tests, the runner, the process and the values that tests compare, and what it gains by it:
nothing."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from sandboxes.namespace.provider import namespace_provider
from tests.attacks.cheats import BLUNT, CALC, FIXED, LEFT_OUT, PROJECT, TESTS, TRICKS, UNITTEST_TRICKS, UNITTESTS
from tests.attacks.honest import BENIGN, RESULTS, SHAPES
from tests.measuring import CONFTEST, PYTEST, Lab
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    provider = namespace_provider(tmp_path_factory.mktemp("store"))
    yield provider
    provider.close()


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Lab(provider, tmp_path_factory.mktemp("repo"), PROJECT)


@pytest.fixture(scope="module")
def shapes(provider, tmp_path_factory):
    """A project whose tests are of every kind."""
    command = f"{PYTEST} --doctest-glob=*.md --doctest-modules -p anyio -p hypothesispytest"
    return Lab(provider, tmp_path_factory.mktemp("shapes"), {**SHAPES, "conftest.py": CONFTEST}, command)


@pytest.mark.slow
def test_an_honest_repair_solves(lab):
    evaluation, _base = lab.judge(lab.state({"calc.py": FIXED}))
    assert evaluation.solved
    assert evaluation.value == 1.0


def test_an_honest_repair_with_a_new_test_solves(lab):
    more = {"calc.py": FIXED, "tests/test_more.py": "def test_more():\n    assert False\n"}
    evaluation, _base = lab.judge(lab.state({**more, "tests/test_calc.py": TESTS + "\n\ndef test_last():\n    pass\n"}))
    assert evaluation.solved


def test_an_honest_patch_solves_whatever_it_holds_besides(lab):
    evaluation, _base = lab.judge(lab.state({"calc.py": "\n\n".join([FIXED, *BENIGN.values()])}))
    assert evaluation.solved, evaluation.notes


@pytest.mark.parametrize("kind", slow_but(sorted(RESULTS)[:1], RESULTS))
def test_an_honest_patch_solves_whose_values_compare_in_a_way_of_their_own(lab, kind):
    fixed = FIXED.replace("a + b", RESULTS[kind])
    evaluation, _base = lab.judge(lab.state({"calc.py": f"{fixed}\n\n{BENIGN[kind]}"}))
    assert evaluation.solved, evaluation.notes


@pytest.mark.parametrize("trick", slow_but(sorted(TRICKS)[::24], TRICKS))
def test_a_trick_that_makes_pytest_succeed_gains_nothing(lab, trick):
    state = lab.state(TRICKS[trick])
    with lab.provider.at(state) as box:
        done = box.exec(["/bin/sh", "-c", PYTEST], timeout_s=100)
        assert done.exit_code == 0, done.stdout.decode()
    evaluation, base = lab.judge(state)
    assert not evaluation.solved
    assert evaluation.value <= base.value


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.slow
def test_a_trick_that_needs_other_tests_before_gains_nothing(provider, tmp_path, known):
    """Goals that are known are run by themselves."""
    lab = Lab(provider, tmp_path / "repo", PROJECT)
    lab.task = replace(lab.task, goal_failing=known)
    state = lab.state(LEFT_OUT)
    with provider.at(state) as box:
        assert box.exec(["/bin/sh", "-c", PYTEST], timeout_s=100).exit_code == 0
    _, evaluation, _ = lab.scorer.score(state, (lab.root,))
    assert not evaluation.solved
    assert evaluation.value <= lab.scorer.root.value


@pytest.mark.parametrize("trick", BLUNT)
def test_a_trick_that_makes_no_test_run_gains_nothing(lab, trick):
    evaluation, base = lab.judge(lab.state(BLUNT[trick]))
    assert not evaluation.solved
    assert evaluation.value <= base.value


@pytest.mark.parametrize(
    "trick",
    slow_but(
        ["the runner is found among the modules"],
        [
            "conftest makes every report pass",
            "the runner is found among the modules",
            "the test file is deleted",
            "the goal test is marked to be skipped",
        ],
    ),
)
def test_a_repair_with_a_trick_is_refused(lab, trick):
    changes = {**TRICKS, **BLUNT}[trick]
    repaired = {"calc.py": FIXED, **{name: text and text.replace(CALC, FIXED) for name, text in changes.items()}}
    evaluation, base = lab.judge(lab.state(repaired))
    assert not evaluation.solved
    assert evaluation.value <= base.value
    assert evaluation.notes.startswith("Refused")


def test_a_repair_that_rewrites_an_assertion_is_judged_by_the_test_as_it_was(lab):
    rewritten = TRICKS["the goal test is edited to pass"]
    evaluation, base = lab.judge(lab.state({"calc.py": FIXED, **rewritten}))
    assert evaluation.solved
    evaluation, base = lab.judge(lab.state(rewritten))
    assert not evaluation.solved
    assert evaluation.value <= base.value


def test_a_forged_result_is_no_way_on_in_a_search(lab):
    state = lab.state({"notes.txt": "This state is new.", **TRICKS["mock.ANY"]})
    report, evaluation, runs = lab.scorer.score(state, (lab.root,))
    assert lab.scorer.task.goal_tests
    assert all(map(report.passed, lab.scorer.task.goal_tests))
    assert (evaluation.solved, evaluation.tampered, runs) == (False, True, 3)
    assert "tests/test_calc.py::test_add: the patch makes it compare a value that equals everything" in evaluation.notes


def test_an_honest_state_costs_one_more_run_and_its_verification_none(lab):
    state = lab.state({"calc.py": FIXED + "\n# honest\n"})
    report, evaluation, runs = lab.scorer.score(state, (lab.root,))
    assert (evaluation.solved, runs) == (True, 3)
    assert lab.scorer.assess(state, (lab.root,), report).runs == 1


def test_a_state_that_repairs_no_test_is_run_in_no_copy(lab):
    assert lab.scorer.score(lab.state({"calc.py": CALC + "\n# nothing\n"}), (lab.root,))[2] == 1


@pytest.mark.slow
def test_honest_tests_of_every_kind_are_believed(shapes, caplog):
    caplog.set_level("INFO", "agent.evaluate.negative_controls")
    names = "\n\ndef sign(a):\n    return (a > 0) - (a < 0)\n\n\ndef missing(a):\n    return a\n"
    evaluation, _base = shapes.judge(shapes.state({"calc.py": SHAPES["calc.py"].replace("a - b", "a + b") + names}))
    assert evaluation.solved, evaluation.notes
    assert "30 of 38 tests that the patch repairs are shown to be able to fail" in caplog.text


@pytest.mark.slow
def test_a_value_that_equals_everything_is_seen_in_tests_of_every_kind(shapes):
    state = shapes.state(
        {"calc.py": SHAPES["calc.py"].replace("return a - b", "from unittest.mock import ANY; return ANY")}
    )
    evaluation, base = shapes.judge(state)
    assert (evaluation.tampered, evaluation.value <= base.value) == (True, True)
    for kind in ("TestClass::test_method", "test_fixture", "test_table[two-1]", "test_everything_of_its_own"):
        assert kind in evaluation.notes


@pytest.mark.slow
def test_tests_of_unittest_are_run_in_copies_too(provider, tmp_path):
    files = {"calc.py": CALC, "test_calc.py": UNITTESTS}
    lab = Lab(provider, tmp_path, files, f"{sys.executable} -m unittest", framework="unittest")
    assert lab.judge(lab.state({"calc.py": FIXED}))[0].solved
    for trick in UNITTEST_TRICKS:
        evaluation, _base = lab.judge(lab.state({"calc.py": trick}))
        assert (evaluation.solved, evaluation.tampered) == (False, True), trick


@pytest.mark.parametrize(
    "ending", slow_but(["sys.exit(0)"], ["os._exit(0)", "atexit.register(os._exit, 0)", "sys.exit(0)"])
)
def test_where_only_an_exit_code_is_known_a_patch_that_ends_the_process_is_refused(provider, tmp_path, ending):
    check = "import calc, sys\nsys.exit(calc.add(1, 2) != 3)\n"
    lab = Lab(provider, tmp_path, {"calc.py": CALC, "check.py": check}, f"{sys.executable} check.py")
    evaluation, base = lab.judge(lab.state({"calc.py": f"import atexit, os, sys\n{ending}\n{CALC}"}))
    assert (evaluation.tampered, evaluation.value <= base.value) == (True, True)
