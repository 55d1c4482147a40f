"""What a report is worth, which tests are goals, and what in a patch makes it not to be trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.evaluate.goal_tests import lacking, left_out, resolve_goals
from agent.evaluate.guard import cap
from agent.evaluate.process_exits import suspicions
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.tests import BASE_VALUE, PassingTests
from agent.measure import Outcome, SuiteReport
from agent.measure.diffs import parse
from agent.measure.protection import protect
from agent.measure.regressions import must_pass, regressions
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node
from agent.task import Task
from sandboxes import Change, SandboxError, Snapshot, Workspace

P, F, E, S, T = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED, Outcome.TIMEOUT
BASELINE = SuiteReport({"t::a": F, "t::b": F, "t::c": P, "t::d": P, "t::e": S, "u": E}, collected=6)
SOLVED = SuiteReport(dict.fromkeys(BASELINE.outcomes, P) | {"t::e": S, "u": S, "u::x": P}, collected=6)


def task(*goals, **changes):
    return Task("t", "s", Workspace(), changes.pop("command", "pytest"), goals, **changes)


def worth(report, *goals, baseline=BASELINE):
    wanted = task(*(goals or ("t::a", "t::b")))
    root = Node(0, (), (), Snapshot("0", "0"), baseline, Evaluation(0))
    return PassingTests().evaluate(EvaluationInput(wanted, (root,), report))


def ending(**ends):
    return replace(BASELINE, outcomes={**BASELINE.outcomes, **{f"t::{test}": end for test, end in ends.items()}})


# ---- value


def test_the_base_state_is_worth_little_and_not_nothing():
    assert PassingTests().evaluate(EvaluationInput(task("t::a"), (), BASELINE)).value == BASE_VALUE
    assert worth(BASELINE).value == BASE_VALUE


def test_all_goals_and_nothing_broken_is_solved():
    evaluation = worth(ending(a=P, b=P))
    assert evaluation.solved
    assert evaluation.value == 1.0
    assert evaluation.notes == ""


def test_each_goal_counts():
    assert BASE_VALUE < worth(ending(a=P)).value < worth(ending(a=P, b=P)).value


@pytest.mark.parametrize("end", [F, E, S, T])
def test_a_test_that_passed_has_to_pass(end):
    evaluation = worth(ending(a=P, b=P, c=end))
    assert not evaluation.solved
    assert BASE_VALUE < evaluation.value < worth(ending(a=P, b=P)).value
    assert "Broken: t::c" in evaluation.notes


def test_a_test_that_is_gone_is_broken():
    report = replace(BASELINE, outcomes={"t::a": P, "t::b": P, "t::c": P})
    assert not worth(report).solved


def test_a_skipped_goal_has_not_passed():
    assert worth(ending(a=S, b=P)).value < worth(ending(a=P, b=P)).value


def test_goal_tests_alone_never_solve():
    report = SuiteReport({"t::a": P, "t::b": P}, complete=False)
    evaluation = worth(report)
    assert not evaluation.solved
    assert BASE_VALUE < evaluation.value < 1


def test_an_invalid_report_is_worth_nothing():
    evaluation = worth(replace(ending(a=P, b=P), valid=False, problem="it broke off"))
    assert evaluation.value == 0
    assert not evaluation.solved
    assert "it broke off" in evaluation.notes


def test_flaky_tests_decide_nothing():
    baseline = replace(BASELINE, flaky=("t::c",))
    assert worth(ending(a=P, b=P, c=F), baseline=baseline).solved


def test_getting_past_a_broken_import_is_progress():
    imported = replace(BASELINE, outcomes={**BASELINE.outcomes, "u::x": F})
    del imported.outcomes["u"]  # type: ignore[attr-defined]  # a dict
    assert BASE_VALUE < worth(imported, "u").value < 0.5


def test_the_notes_say_what_still_fails_and_how():
    report = replace(ending(a=P), messages={"t::b": "assert 1 == 2"})
    assert worth(report).notes == "Still failing: t::b (failed)\nassert 1 == 2"


def test_where_nothing_fails_nothing_is_solved():
    passing = SuiteReport({"t::a": P})
    assert not PassingTests().evaluate(EvaluationInput(task(), (), passing)).solved


@given(
    st.dictionaries(st.sampled_from(list(BASELINE.outcomes)), st.sampled_from(Outcome)), st.booleans(), st.booleans()
)
def test_a_value_is_a_share_and_one_only_when_solved(ends, complete, valid):
    evaluation = worth(SuiteReport(ends, complete=complete, valid=valid))
    assert 0 <= evaluation.value <= 1
    assert (evaluation.value == 1) == evaluation.solved


@given(st.permutations([t for t in BASELINE.outcomes if t != "u"]), st.data(), st.integers(1, 3))
def test_a_run_that_is_cut_short_gives_the_verdict_of_the_whole(order, data, allowed):
    ends = {test: data.draw(st.sampled_from([P, P, F, E, S, T])) for test in order}
    whole = SuiteReport(ends)
    lost = [n for n, test in enumerate(order, 1) if test in must_pass(BASELINE) and ends[test] is not P]
    kept = lost[allowed - 1] if len(lost) >= allowed else len(order)
    skipped = len(order) - kept
    cut = SuiteReport({test: ends[test] for test in order[:kept]}, complete=not skipped, left_out=skipped)
    assert worth(cut, "t::a", "t::b").solved == worth(whole, "t::a", "t::b").solved
    assert set(regressions(BASELINE, cut)) <= set(regressions(BASELINE, whole))
    if skipped:
        assert regressions(BASELINE, cut)


# ---- goals


def test_a_test_that_happens_to_fail_is_no_goal():
    assert resolve_goals(task(), BASELINE) == ()


def test_every_failure_that_is_not_flaky_is_a_goal_where_the_task_says_so():
    assert resolve_goals(task(goal_failing=True), replace(BASELINE, flaky=("t::b",))) == ("t::a", "u")


def test_goals_that_are_named_are_the_only_ones_whatever_fails_besides():
    assert resolve_goals(task("t::a", goal_failing=True), BASELINE) == ("t::a",)


def test_names_of_tests_that_do_not_fail_are_left_out_where_only_failing_ones_are_meant():
    wanted = task("t::c", "t::a", "t::gone", goal_failing=True)
    assert resolve_goals(wanted, BASELINE) == ("t::a",)
    assert left_out(wanted, BASELINE) == ("t::c", "t::gone")
    with pytest.raises(UsageError, match="'t::c' passes already"):
        resolve_goals(replace(wanted, goal_tests=("t::c",)), BASELINE)


def test_one_string_is_not_taken_for_several_goals():
    with pytest.raises(UsageError, match=r"Task\(goal_tests='t::a'\) is one string; give a tuple: \('t::a',\)"):
        replace(task(), goal_tests="t::a")


def test_a_command_is_a_string_and_set_up_a_tuple():
    with pytest.raises(UsageError, match=r"Task\(test_command=\['pytest'\]\) is not a string; give a shell command"):
        replace(task(), test_command=["pytest"])
    with pytest.raises(SandboxError, match=r"Workspace\(setup='make'\) is one string; give a tuple: \('make',\)"):
        Workspace(setup="make")


def test_a_file_stands_for_what_fails_in_it():
    assert resolve_goals(task("t"), BASELINE) == ("t::a", "t::b")


def test_a_goal_that_lacks_a_package_is_told_from_one_that_computes_a_wrong_name():
    lacks = "E   ModuleNotFoundError: No module named 'nobody_has'"
    computes = f"importlib/__init__.py:90: in import_module\n{lacks}"
    baseline = replace(BASELINE, messages={"t::a": lacks, "t::b": computes, "u": computes})
    assert lacking(("t::a", "t::b", "u::test_new"), baseline) == {"t::a": "nobody_has", "u::test_new": "nobody_has"}


def test_a_goal_in_a_module_that_cannot_be_imported_is_taken_as_named():
    assert resolve_goals(task("u::test_new", "t::a"), BASELINE) == ("u::test_new", "t::a")


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        ("t::aa", "did you mean t::a"),
        (
            "something/else.py::test_entirely",
            r"^there is no test named '.*'; `python3 -m pytest --collect-only -q` lists the names$",
        ),
        ("t::c", "'t::c' passes already, so there is nothing to fix"),
        ("t::e", "does not fail: its outcome before any change is skipped"),
    ],
)
def test_a_goal_that_cannot_be_one_is_refused(goal, says):
    with pytest.raises(UsageError, match=says):
        resolve_goals(task(goal), BASELINE)


# ---- protected paths


@pytest.mark.parametrize(
    "path",
    [
        "tests/data/x.json",
        "pkg/tests/deep/helper.py",
        "test/x.py",
        "a/b/test_x.py",
        "x_test.py",
        "conftest.py",
        "pkg/conftest.py",
        "sitecustomize.py",
        "x.pth",
        "setup.cfg",
        "pyproject.toml",
        "pytest.ini",
        "tox.ini",
        "checks/odd.py",
        ".venv/lib/python3.11/site-packages/_pytest/runner.py",
        "pkg/__pycache__/a.cpython-311.pyc",
        "src/pkg.egg-info/entry_points.txt",
        "Makefile",
        "run.sh",
        "data/x",
        "lib/test/case_x.py",
    ],
)
def test_these_are_protected(path):
    protection = protect(
        task(command="./run.sh && make check", protected_paths=("data",)),
        SuiteReport({"checks/odd.py::test_a": P, "lib/test/case_y.py::test_b": P}),
    )
    assert protection.covers(Change(path, "modified"))


@pytest.mark.parametrize(
    "path",
    [
        "calc.py",
        "src/pkg/mod.py",
        "pkg/testing/helpers.py",
        "django/test/client.py",
        "contest.py",
        "README.md",
        "json.py",
    ],
)
def test_these_may_be_changed(path):
    doctests = SuiteReport({"calc.py::calc.add": P, "src/pkg/mod.py::pkg.mod": P, "src/pkg/mod.py::pkg.mod.f": P})
    assert not protect(task(), doctests).covers(Change(path, "modified"))


@pytest.mark.parametrize("path", ["json.py", "pytest.py", "src/pytest/__init__.py", "code/pluggy.py", "re/__init__.py"])
def test_new_modules_in_the_place_of_the_runner_are_protected(path):
    protection = protect(task(command="PYTHONPATH=code pytest"), SuiteReport())
    assert protection.covers(Change(path, "added"))


@pytest.mark.parametrize("path", ["pkg/json.py", "pkg/types/__init__.py", "helpers.py"])
def test_new_modules_elsewhere_are_not(path):
    assert not protect(task(), SuiteReport()).covers(Change(path, "added"))


# ---- suspicions


@pytest.mark.parametrize(
    "source",
    [
        "import os\nx = os._exit",
        "from os import _exit",
        "import os as o\no._exit(0)",
        "import atexit\natexit.register(print)",
        "import sys\nsys.exit(0)",
        "raise SystemExit",
        "try:\n    quit()\nfinally:\n    pass",
        "import os\ndef f():\n    os.kill(1, 9)",
    ],
)
def test_these_lines_end_the_process(source):
    assert suspicions(source, range(1, 10))


@pytest.mark.parametrize(
    "source",
    [
        "import sys\ndef main():\n    sys.exit(1)",
        "import sys\nif __name__ == '__main__':\n    sys.exit(main())",
        "def exit_code():\n    return 3",
        "import os\nos.environ.get('HOME')",
        "def broken(:",
        "from . import _exit",
    ],
)
def test_these_lines_do_not(source):
    assert suspicions(source, range(1, 10)) == []


def test_only_added_lines_are_judged():
    source = "import pytest\nimport os\nos._exit(0)\n"
    assert [line for line, _reason in suspicions(source, {3})] == [3]


def test_a_flagged_state_is_worth_no_more_than_the_base():
    from agent.evaluate.guard import Flag

    flags = (Flag("calc.py", 3, "it cheats"),)
    capped = cap(Evaluation(1.0, solved=True), Evaluation(0.1), flags)
    assert (capped.value, capped.solved) == (0.1, False)
    assert "calc.py:3: it cheats" in capped.notes
    assert cap(Evaluation(0.05), Evaluation(0.1), flags).value == 0.05
    assert cap(Evaluation(1.0, solved=True), Evaluation(0.1), ()).solved


# ---- patches

PATCH = rb"""diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,3 @@
 one
--- two
+++ b/two
+three
@@ -10 +11 @@
-x
\ No newline at end of file
+y
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git "a/sn\303\266\t.py" "b/sn\303\266\t.py"
--- "a/sn\303\266\t.py"
+++ "b/sn\303\266\t.py"
@@ -0,0 +1 @@
+z
"""


def test_a_patch_says_which_lines_it_adds():
    first, gone, strange = parse(PATCH)
    assert (first.path, first.added, first.removed) == ("a.py", {2: "++ b/two", 3: "three", 11: "y"}, ["-- two", "x"])
    assert (gone.path, gone.added, gone.removed) == ("gone.py", {}, ["x"])
    assert (strange.path, strange.added) == ("sn\u00f6\t.py", {1: "z"})
