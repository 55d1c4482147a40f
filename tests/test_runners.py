"""Python projects whose tests are not pytest's, in real sandboxes: which tests run, how long, and what they tell."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent.evaluate.goal_tests import resolve_goals
from agent.evaluate.guard import inspect
from agent.evaluate.negative_controls import Controls
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.adapters.registry import adapter_of, choose
from agent.measure.adapters.running import run_adapted
from agent.measure.measurer import find_baseline
from agent.measure.naming import Names, likely_file
from agent.measure.warm.plugins import Limits, run_names
from sandboxes.docker.provider import docker_provider
from tests.languages import BIN_TEST_BY_PYTEST, BY_PYTEST, BY_SYMPY, LANGUAGES, PYTHON, RUNTESTS, SHOP, TAP, UNITTESTS
from tests.measuring import Lab
from tests.tiers import slow_but

LIMITS = Limits(cpu_s=2, wall_s=3, run_s=100, timeouts=1000)
PACKAGES = ("django", "asgiref", "sqlparse")
SLEEPING = """import time, unittest


class Slow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print("set up")

    def test_asleep(self):
        time.sleep(900)

    def test_stubborn(self):
        try:
            while True:
                pass
        except BaseException:
            pass

    def test_well(self):
        pass


class Waiting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        time.sleep(900)

    def test_never(self):
        pass
"""
SLEEPING_FUNCTIONS = """import time


def test_asleep():
    time.sleep(900)


def test_stubborn():
    try:
        while True:
            pass
    except BaseException:
        pass


def test_well():
    pass
"""
SKIPPED = """import unittest


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no such database")

    def test_first(self):
        pass

    def test_second(self):
        pass
"""
IMPORTED = "raise RuntimeError('this file is not wanted')\n"


@dataclass(frozen=True)
class Project:
    """A project, and where its tests are."""

    framework: str
    files: dict[str, str]
    command: str
    folder: str
    """Of `test_calc.py`, which holds `test_add`, which fails, and `test_double`; in `Calc`, where there are classes."""
    classes: bool = True

    @property
    def file(self) -> str:
        return f"{self.folder}test_calc.py"

    def test(self, name: str, file: str = "test_calc.py", owner: str = "Calc") -> str:
        return "::".join([self.folder + file, *([owner] if self.classes else []), name])


PROJECTS = {
    "unittest": Project("unittest", LANGUAGES["unittest"].files, "python3 -m unittest", ""),
    "discovery": Project(
        "unittest",
        {
            "calc.py": PYTHON,
            "tests/__init__.py": "",
            "tests/unit/__init__.py": "",
            "tests/unit/test_calc.py": UNITTESTS,
        },
        "python3 -m unittest discover -s tests -t . -v",
        "tests/unit/",
    ),
    "names": Project(
        "unittest",
        {"calc.py": PYTHON, "tests/__init__.py": "", "tests/test_calc.py": UNITTESTS, "tests/test_bad.py": IMPORTED},
        "python3 -m unittest tests.test_calc.Calc tests.test_calc.Twice",
        "tests/",
    ),
    "manage.py": Project("django", LANGUAGES["django"].files, "python3 manage.py test", "shop/tests/"),
    "parallel": Project("django", LANGUAGES["django"].files, "python3 manage.py test --parallel 2 shop", "shop/tests/"),
    "runtests.py": Project(
        "django",
        {name if name == "calc.py" else f"tests/{name}": text for name, text in SHOP.items()}
        | {"tests/runtests.py": RUNTESTS},
        "cd tests && PYTHONPATH=..:$PYTHONPATH python3 -W default runtests.py --failfast",
        "tests/shop/tests/",
    ),
    "sympy by pytest": Project(
        "sympy",
        BY_SYMPY | {"bin/test": BIN_TEST_BY_PYTEST, "sympy/testing/runtests_pytest.py": BY_PYTEST},
        "python3 bin/test --verbose",
        "sympy/core/tests/",
        classes=False,
    ),
    "sympy": Project(
        "sympy", BY_SYMPY, "PYTHONWARNINGS=ignore python3 bin/test -C --verbose", "sympy/core/tests/", classes=False
    ),
}


@pytest.fixture(scope="module", params=["namespace", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def sandboxes(kind, request, tmp_path_factory):
    """A provider of each kind."""
    if kind == "namespace":
        yield request.getfixturevalue("provider")
        return
    request.getfixturevalue("engine")
    with docker_provider(tmp_path_factory.mktemp("images") / "store") as provider:
        yield provider


def lab_of(provider, folder, project, kind="namespace", **more):
    """The project in a sandbox; an image has no Django, which is put beside the project there."""
    command = project.command
    if project.framework == "django" and kind == "docker":
        command = f"export PYTHONPATH=$PWD/vendor; {command}"
        for name in PACKAGES:
            place = Path(find_spec(name).origin).parent
            shutil.copytree(place, folder / "vendor" / name, ignore=shutil.ignore_patterns("__pycache__", "*.po"))
    return Lab(provider, folder, project.files | more, command, framework=project.framework)


def run(lab, wanted=(), **limits):
    with lab.provider.at(lab.base) as box:
        adapter = adapter_of(lab.task.framework)
        return run_adapted(box, adapter, lab.task.test_command, wanted, replace(LIMITS, **limits))


def ends(report):
    return {test: outcome.value for test, outcome in report.outcomes.items()}


@pytest.mark.namespace
@pytest.mark.parametrize("name", slow_but(["unittest", "parallel"], PROJECTS))
def test_all_tests_are_told_and_of_wanted_ones_these_and_no_others(name, kind, sandboxes, tmp_path):
    project = PROJECTS[name]
    lab = lab_of(sandboxes, tmp_path / "repo", project, kind)
    add, double = project.test("test_add"), project.test("test_double")
    whole = run(lab)
    assert (whole.valid, whole.problem, whole.complete) == (True, "", True)
    assert (ends(whole)[add], ends(whole)[double]) == ("failed", "passed")
    assert "add" in whole.messages[add]
    some = run(lab, [double])
    assert (ends(some), some.complete, some.problem) == ({double: "passed"}, False, "")
    by_file = run(lab, [project.file])
    assert set(ends(by_file)) == {test for test in ends(whole) if test.startswith(project.file) and "(2)" not in test}
    absent = run(lab, [project.test("test_nowhere")])
    assert not absent.valid


@pytest.mark.namespace
@pytest.mark.parametrize("name", slow_but(["unittest", "parallel", "sympy"], PROJECTS))
def test_a_run_without_time_lists_the_tests(name, provider, tmp_path):
    lab = lab_of(provider, tmp_path / "repo", PROJECTS[name])
    whole, listed = run(lab), run(lab, run_s=0)
    assert (listed.valid, listed.problem, listed.complete, ends(listed)) == (True, "", False, {})
    assert sum(listed.late.values()) == len(whole.outcomes)
    assert PROJECTS[name].file in listed.late


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize(
    "name", ["unittest", "discovery", "manage.py", "parallel", "runtests.py", "sympy", "sympy by pytest"]
)
def test_a_test_that_sleeps_costs_its_own_result_and_no_other(name, provider, tmp_path):
    project = PROJECTS[name]
    text = SLEEPING if project.classes else SLEEPING_FUNCTIONS
    lab = lab_of(provider, tmp_path / "repo", project, **{f"{project.folder}test_slow.py": text})
    report = run(lab)
    found = ends(report)
    slow = {test: project.test(f"test_{test}", "test_slow.py", "Slow") for test in ("asleep", "stubborn", "well")}
    assert {test: found[each] for test, each in slow.items()} == {
        "asleep": "timeout",
        "stubborn": "timeout",
        "well": "passed",
    }
    assert found[project.test("test_double")] == "passed"
    if project.classes:
        assert found[project.test("test_never", "test_slow.py", "Waiting")] == "error"
    assert (report.valid, report.problem, report.exit_code) == (True, "", 1)


@pytest.mark.namespace
@pytest.mark.parametrize("name", slow_but(["unittest", "parallel"], ["unittest", "manage.py", "parallel"]))
def test_the_tests_of_a_class_that_is_skipped_as_a_whole_are_skipped(name, provider, tmp_path):
    project = PROJECTS[name]
    lab = lab_of(provider, tmp_path / "repo", project, **{f"{project.folder}test_elsewhere.py": SKIPPED})
    report = run(lab)
    found = {test: end for test, end in ends(report).items() if "Elsewhere" in test}
    assert (report.valid, report.problem, set(found.values()), len(found)) == (True, "", {"skipped"}, 2)


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("name", ["unittest", "manage.py", "parallel", "sympy"])
def test_when_the_time_of_the_run_is_up_the_rest_is_late_and_what_ran_counts(name, provider, tmp_path):
    project = PROJECTS[name]
    text = SLEEPING if project.classes else SLEEPING_FUNCTIONS
    lab = lab_of(provider, tmp_path / "repo", project, **{f"{project.folder}test_slow.py": text})
    report = run(lab, run_s=12, cpu_s=100, wall_s=200)
    assert (report.valid, report.problem, report.timed_out, report.complete) == (True, "", False, False)
    assert ends(report)[project.test("test_double")] == "passed"
    assert report.late[f"{project.folder}test_slow.py"] == (4 if project.classes else 3)
    assert report.duration_s < 25


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("name", ["unittest", "parallel", "sympy"])
def test_a_test_is_ended_as_late_where_others_shall_have_their_turn(name, provider, tmp_path):
    project = PROJECTS[name]
    text = SLEEPING if project.classes else SLEEPING_FUNCTIONS
    lab = lab_of(provider, tmp_path / "repo", project, **{f"{project.folder}test_slow.py": text})
    report = run(lab, late_s=1.0, cpu_s=100, wall_s=200)
    assert (report.valid, report.problem) == (True, "")
    assert report.passed(project.test("test_well", "test_slow.py", "Slow"))
    assert report.late[f"{project.folder}test_slow.py"] == (3 if project.classes else 2)


@pytest.mark.slow
@pytest.mark.namespace
def test_files_that_are_not_wanted_are_not_imported_where_that_can_be(provider, tmp_path):
    marks = "open('imported', 'a').write(__name__)\n"
    for name in ("discovery", "names", "manage.py", "runtests.py"):
        project = PROJECTS[name]
        more = {f"{project.folder}test_other.py": f"{marks}import unittest\n"}
        lab = lab_of(provider, tmp_path / name, project, **more)
        with lab.provider.at(lab.base) as box:
            wanted = [project.test("test_double")]
            report = run_adapted(box, adapter_of(project.framework), project.command, wanted, LIMITS)
            assert (report.passes, report.problem) == ((project.test("test_double"),), "")
            assert box.exec(["sh", "-c", "find . -name imported"], timeout_s=60).stdout == b""


@pytest.mark.namespace
def test_so_many_processes_run_as_the_limits_say(provider, tmp_path):
    text = "import os\nfrom django.test import SimpleTestCase\n"
    text += "".join(
        f"class C{n}(SimpleTestCase):\n    def test_it(self):\n        self.assertEqual(os.getpid(), 0)\n"
        for n in range(6)
    )
    lab = lab_of(provider, tmp_path / "repo", PROJECTS["manage.py"], **{"shop/tests/test_pid.py": text})
    said = {jobs: run(lab, ["shop/tests/test_pid.py"], jobs=jobs) for jobs in (1, 2)}
    pids = {jobs: {message.split("AssertionError: ")[1] for message in said[jobs].messages.values()} for jobs in said}
    assert (len(pids[1]), len(said[2].outcomes)) == (1, 6)
    assert len(pids[2]) == 2
    assert all(report.valid for report in said.values())


@pytest.mark.namespace
def test_a_run_of_unittest_leaves_out_the_rest_when_enough_is_broken(provider, tmp_path):
    lab = lab_of(provider, tmp_path / "repo", PROJECTS["unittest"])
    report = run(lab, must_pass=frozenset({"test_calc.py::Calc::test_add"}), regressions=1)
    assert report.left_out > 0
    assert (report.valid, report.problem) == (True, "")


NOTHING = """class Same:
    def __eq__(self, other):
        return True

    __hash__ = None


def add(a, b):
    return Same()


def double(a):
    return 2 * a
"""


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("name", ["manage.py", "sympy"])
def test_a_value_that_equals_everything_repairs_no_test_of_these_runners(name, provider, tmp_path):
    lab = lab_of(provider, tmp_path / "repo", PROJECTS[name])
    source = "sympy/calc.py" if name == "sympy" else "calc.py"
    measurer = lab.measurer()
    controls = Controls(provider, lab.base, measurer.baseline, measurer)
    forged = lab.state({source: NOTHING})
    flags, _ = controls.look(forged, measurer.measure(forged))
    assert [flag for flag in flags if "equals everything" in flag.reason]
    right = lab.state({source: PYTHON.replace("a - b", "a + b")})
    assert controls.look(right, measurer.measure(right))[0] == ()


DOTS = "import sys\nprint('12 of 12 passed ... ok')\nsys.exit(1)\n"


@pytest.mark.namespace
@pytest.mark.parametrize(
    ("files", "command", "adapter", "failing"),
    [
        ({"calc.py": PYTHON, "run.py": TAP}, "python3 run.py", "log:tap", "adds"),
        (
            {"calc.py": PYTHON, "test_calc.py": UNITTESTS + "\n\nunittest.main()\n"},
            "python3 test_calc.py -v",
            "log:unittest",
            "test_add (__main__.Calc.test_add)",
        ),
        ({"calc.py": PYTHON, "test_calc.py": UNITTESTS + "\n\nunittest.main()\n"}, "python3 test_calc.py", "", ""),
        ({"run.py": DOTS}, "python3 run.py", "", ""),
        ({"run.py": "print('1..2')\nprint('ok 1 - a')\nprint('ok 2 - b')\nexit(3)\n"}, "python3 run.py", "", ""),
    ],
)
def test_a_command_that_nobody_knows_is_read_by_what_it_prints_or_is_one_test(
    files, command, adapter, failing, sandboxes, tmp_path
):
    lab = Lab(sandboxes, tmp_path / "repo", files, command, mount="/workspace")  # its own path names pytest
    report = find_baseline(sandboxes, lab.task, lab.base, runs=1)
    assert (report.adapter, report.failures) == (adapter or "exit-code", (failing or "test-command",))
    assert report.valid


@pytest.mark.namespace
def test_nose_is_asked_to_name_its_tests(provider, tmp_path):
    language = LANGUAGES["log:unittest"]
    assert choose(None, language.command, None) == ("log:unittest", language.command)
    lab = Lab(provider, tmp_path / "repo", language.files, language.command, framework="log:unittest")
    assert lab.baseline.failures == (language.goal,)
    assert "AssertionError: -1 != 3" in lab.baseline.messages[language.goal]
    fixed = lab.report({"calc.py": PYTHON.replace("a - b", "a + b")})
    assert fixed.passed(language.goal)


@pytest.mark.namespace
def test_a_patch_that_holds_what_a_log_says_or_ends_the_process_is_not_trusted(provider, tmp_path):
    language = LANGUAGES["log:tap"]
    lab = Lab(provider, tmp_path / "repo", language.files, language.command, framework="log:tap")
    protection = lab.measurer().protection
    reasons = {
        "print('ok 1 - adds')": "holds what the log says",
        "import os; os._exit(0)": "ends the process",
        "print(f'ok {n} - {name}')": "holds what the log says",
    }
    for line, reason in reasons.items():
        flags = inspect(provider, lab.base, lab.state({"calc.py": f"{PYTHON}\n{line}\n"}), protection)
        assert reason in flags[0].reason, line
    honest = PYTHON.replace("a - b", "a + b") + "\nprint('it is ok', 1, 'not ok')\n"
    assert inspect(provider, lab.base, lab.state({"calc.py": honest, "new.md": "`ok 1 - adds`\n"}), protection) == ()


@pytest.mark.namespace
def test_a_search_of_a_django_project_takes_goals_by_any_name_that_unittest_prints(provider, tmp_path):
    project = PROJECTS["manage.py"]
    lab = lab_of(provider, tmp_path / "repo", project)
    add = project.test("test_add")
    for name in (
        "test_add (shop.tests.test_calc.Calc.test_add)",
        "test_add (shop.tests.test_calc.Calc)",
        "shop.tests.test_calc.Calc.test_add",
        "Items are counted.",
        "test_add",
        add,
    ):
        assert resolve_goals(replace(lab.task, goal_tests=(name,)), lab.baseline) == (add,), name
    scorer = StagedScorer(provider, replace(lab.task, goal_tests=(add,)), lab.base, lab.baseline, PassingTests())
    report, _ = scorer.run_tests(lab.base, ("test_double (shop.tests.test_calc.Calc)", "Calc.test_later"))
    assert ends(report) == {project.test("test_double"): "passed", project.test("test_later"): "skipped"}


def test_titles_are_names_where_one_test_has_them():
    titles = {"Items are counted.": "shop/tests.py::Calc::test_add"}
    names = Names(SuiteReport(titles=titles), lambda path: "")
    assert names.found(" Items are counted. ") == ("shop/tests.py::Calc::test_add",)


FILES = (
    "tests/queries/tests.py",
    "tests/queries/test_bulk_update.py",
    "tests/composite_pk/test_values.py",
    "tests/annotations/tests.py",
    "polls/tests/__init__.py",
    "a/test_x.py",
    "b/test_x.py",
)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("test_y (queries.tests.ValuesQuerysetTests.test_y)", "tests/queries/tests.py"),
        ("test_y (queries.tests.ValuesQuerysetTests)", "tests/queries/tests.py"),
        ("test_y (composite_pk.test_values.CompositePKValuesTests.test_y) (i=1)", "tests/composite_pk/test_values.py"),
        ("queries.test_bulk_update.BulkUpdateTests", "tests/queries/test_bulk_update.py"),
        ("setUpClass (annotations.tests.NonAggregateAnnotationTestCase)", "tests/annotations/tests.py"),
        ("polls.tests.PollTests.test_it", "polls/tests/__init__.py"),
        ("tests/queries/tests.py::Any::test_it[a.b]", "tests/queries/tests.py"),
        ("/testbed/tests/queries/tests.py", "tests/queries/tests.py"),
        ("b.test_x.test_it", "b/test_x.py"),
        ("test_x.test_it", None),
        ("test_it", None),
        ("Items are counted.", None),
        ("tests.Any.test_it", None),
    ],
)
def test_a_name_tells_the_file_that_it_is_about_where_it_leaves_no_doubt(name, file):
    assert likely_file(name, FILES) == file


@pytest.mark.parametrize(
    ("command", "framework"),
    [
        ("python manage.py test", "django"),
        ("PYTHONPATH=. python tests/runtests.py --parallel 1 --verbosity 2 queries", "django"),
        ("./tests/runtests.py", "django"),
        ("tests/runtests.py", "django"),
        ("cd tests && ./runtests.py queries", "django"),
        ("coverage run --source=x manage.py test", "django"),
        ("python -Wa -m django test --settings=x", "django"),
        ("django-admin test --settings=x", "django"),
        ("PYTHONWARNINGS='ignore::UserWarning' bin/test -C --verbose sympy/core", "sympy"),
        ("bin/test", ""),
        ("nosetests -v tests", "log:unittest"),
        ("python manage.py migrate", ""),
        ("pytest tests/runtests.py", ""),
    ],
)
def test_a_command_names_the_runner_that_it_is(command, framework):
    assert choose(None, command, None) == (framework, command)


def test_a_program_of_that_name_which_is_not_djangos_is_none_of_its(tmp_path):
    (tmp_path / "runtests.py").write_text("import pytest\n\npytest.main()\n")
    (tmp_path / "bin").mkdir()
    assert choose(tmp_path, "python runtests.py", None)[0] == ""
    assert choose(tmp_path, "bin/test -C", None)[0] == ""
    (tmp_path / "runtests.py").write_text("from django.test.utils import get_runner\n")
    assert choose(tmp_path, "python runtests.py", None)[0] == "django"


@pytest.mark.parametrize(
    ("framework", "command", "ordered"),
    [
        (
            "django",
            "PYTHONPATH=. python3.9 -W error tests/runtests.py a",
            "python3.9 -W error -m {} tests/runtests.py a",
        ),
        ("django", "cd tests && ./runtests.py a", "cd tests && python3 -m {} ./runtests.py a"),
        ("django", "coverage run -p manage.py test", "coverage run -p -m {} manage.py test"),
        ("django", "python -m django test a", "python -m {} -m django test a"),
        ("django", "django-admin test a", "python3 -m {} -m django test a"),
        ("sympy", "A=1 bin/test -C", "A=1 python3 -m {} bin/test -C"),
        ("unittest", "python -X dev -m unittest -v", "python -X dev -m {} -v"),
        ("log:unittest", "nosetests tests && nose2", "nosetests -v tests && nose2 -v"),
        ("log:unittest", "nosetests --verbosity=2 tests", "nosetests --verbosity=2 tests"),
    ],
)
def test_our_program_begins_in_place_of_theirs_with_its_own_arguments(framework, command, ordered):
    planned = run_names(())
    script = adapter_of(framework).invocation(planned, command, (), LIMITS).script
    assert ordered.format(planned.plugins[-1]) in script
