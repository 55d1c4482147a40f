"""Running a repository's tests in a scratch fork, and what is believed of what they say."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from agent.actions.comparison import comparison_text
from agent.errors import MeasureError
from agent.measure import Outcome, SuiteReport
from agent.measure.comparison import compare
from agent.measure.ids import file_of
from agent.measure.measurer import Measurer, find_baseline
from agent.measure.probing.spectrum import Spectrum
from agent.measure.probing.tracing import trace
from agent.measure.regressions import regressions
from agent.measure.suite import GENEROUS, rules_for, run_suite
from tests.measuring import CALC, CONFTEST, FIXED, FIXED_PORT, GOAL, PROJECT, PYTEST, TESTS, Lab
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

DOUBLE, NOTHING = "tests/test_calc.py::test_double", "tests/test_calc.py::test_double_of_nothing"

MANNERS = """
import time, unittest

import pytest


@pytest.mark.parametrize("text", ["a b", "c[1]::d", "\\N{SNOWMAN}"])
def test_parameter(text): pass

@pytest.mark.xfail
def test_expected_failure(): assert False

@pytest.mark.xfail
def test_unexpected_pass(): pass

@pytest.mark.xfail(strict=True)
def test_strict_unexpected_pass(): pass

@pytest.mark.skip
def test_skipped(): pass

@pytest.fixture
def broken(): raise ValueError("no set-up")

@pytest.fixture
def late():
    yield
    raise ValueError("no tear-down")

def test_set_up(broken): pass

def test_tear_down(late): pass

class TestOld(unittest.TestCase):
    def test_parts(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

    @unittest.expectedFailure
    def test_expected(self): assert False

    @unittest.expectedFailure
    def test_unexpected(self): pass

    def test_pretended(self): pytest.fail("Unexpected success")

    def test_fine(self): pass

def test_nothing_of_the_plugin_is_seen():
    import os, re, sys
    assert not [key for key in os.environ if key in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")]
    assert not [path for path in sys.path if re.fullmatch("/tmp/[0-9a-f]{16}", path)]
"""
ENDS = {
    "test_parameter[a b]": "passed",
    "test_parameter[c[1]::d]": "passed",
    "test_parameter[\\u2603]": "passed",
    "test_expected_failure": "passed",
    "test_unexpected_pass": "passed",
    "test_strict_unexpected_pass": "passed",
    "test_skipped": "skipped",
    "test_set_up": "error",
    "test_tear_down": "error",
    "TestOld::test_parts": "failed",
    "TestOld::test_expected": "passed",
    "TestOld::test_unexpected": "passed",
    "TestOld::test_pretended": "failed",
    "TestOld::test_fine": "passed",
    "test_nothing_of_the_plugin_is_seen": "passed",
}
LOOPS = CALC.replace("return a - b", "while True:\n        a += b")


STUBBORN = """    for _ in range(3):
        try:
            while True:
                a += b
        except BaseException:
            pass
"""


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Lab(provider, tmp_path_factory.mktemp("repo"), PROJECT)


@pytest.fixture(scope="module")
def measurer(lab):
    return lab.measurer()


def outcomes(report):
    return {test: outcome.value for test, outcome in report.outcomes.items()}


# ---- what is reported


def test_the_baseline_says_how_every_test_ends(lab, measurer):
    assert outcomes(lab.baseline) == {GOAL: "failed", DOUBLE: "passed", NOTHING: "passed"}
    assert lab.baseline.valid
    assert lab.baseline.complete
    assert lab.baseline.collected == 3
    assert "assert -1 == 3" in lab.baseline.messages[GOAL]
    assert lab.baseline.flaky == ()


def test_nothing_is_collected_beside_the_wanted_tests(provider, tmp_path):
    tests = """import pytest

def test_other(): pass

class TestOne:
    @pytest.mark.parametrize("n", [1, 2])
    def test_each(self, n): pass
    def test_other(self): pass

class TestTwo(TestOne): pass

class TestThree(TestOne): pass
"""
    lab = Lab(provider, tmp_path, {"test_kinds.py": tests})
    one, two = "test_kinds.py::TestOne::test_each", "test_kinds.py::TestTwo"
    report = run_suite(provider, lab.task, lab.base, lab.base, (f"{one}[2]", two))
    assert report.valid
    assert outcomes(report) == dict.fromkeys(
        [f"{one}[2]", f"{two}::test_each[1]", f"{two}::test_each[2]", f"{two}::test_other"], "passed"
    )
    assert report.collected == 5


def test_wanted_tests_that_a_plugin_has_made_are_found(provider, tmp_path):
    conftest = """import pytest

class Case(pytest.Item):
    def runtest(self): pass

def pytest_pycollect_makeitem(collector, name, obj):
    if name == "CASES":
        return [Case.from_parent(collector, name=each) for each in obj]
"""
    tests = """CASES = ["case one", "case two"]

def test_plain(): pass
"""
    lab = Lab(provider, tmp_path, {"conftest.py": conftest, "test_kinds.py": tests})
    for each in ("case two", "test_plain"):
        report = run_suite(provider, lab.task, lab.base, lab.base, (wanted := f"test_kinds.py::{each}",))
        assert outcomes(report) == {wanted: "passed"}


def test_tests_end_in_every_manner(provider, tmp_path):
    lab = Lab(
        provider,
        tmp_path,
        {"test_manners.py": MANNERS, "doc.py": '"""\n>>> 1 + 1\n2\n"""\n'},
        f"{PYTEST} --doctest-modules",
    )
    expected = {f"test_manners.py::{test}": end for test, end in ENDS.items()} | {"doc.py::doc": "passed"}
    report = find_baseline(provider, lab.task, lab.base)
    assert outcomes(report) == expected
    assert report.unexpected == tuple(
        f"test_manners.py::{test}" for test in ("test_strict_unexpected_pass", "TestOld::test_unexpected")
    )


def test_a_port_that_a_test_used_is_free_for_every_later_run(provider, tmp_path):
    lab = Lab(provider, tmp_path, {"test_port.py": FIXED_PORT})
    for _ in range(2):
        report = find_baseline(provider, lab.task, lab.base)
        assert (list(outcomes(report).values()), report.flaky) == (["passed"], ())


@pytest.mark.parametrize("framework", ["", "unittest"])
def test_an_unexpected_pass_breaks_nothing_and_is_told(provider, tmp_path, framework):
    tests = (
        "import unittest, calc\n\n\nclass TestAdd(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    )
    command = f"{sys.executable} -m unittest" if framework else PYTEST
    lab = Lab(provider, tmp_path, {"calc.py": CALC, "test_add.py": tests}, command, framework=framework)
    report = lab.report({"calc.py": FIXED})
    assert report.valid
    assert report.failures == regressions(lab.baseline, report) == ()
    found = compare(lab.baseline, report)
    assert found.unexpected_passes == ("test_add.py::TestAdd::test_add",)
    assert "although it is marked xfail(strict)" in comparison_text(found, report)


def test_a_report_of_before_unexpected_passes_were_listed_can_be_read():
    assert TypeAdapter(SuiteReport).validate_python({"outcomes": {"t": "failed"}}).unexpected == ()


def test_a_changed_state_is_measured_by_its_sources(lab, measurer):
    report = measurer.measure(lab.state({"calc.py": FIXED}))
    assert report.valid
    assert report.failures == ()
    assert report.passed(GOAL)


def test_only_the_named_tests_run(lab, measurer):
    report = measurer.measure(lab.state({"calc.py": FIXED}), (GOAL,))
    assert outcomes(report) == {GOAL: "passed"}
    assert not report.complete


def test_files_without_a_named_test_are_not_imported(lab, measurer):
    strange = {"calc.py": FIXED, "test_other.py": "import nothing_like_it\n"}
    assert outcomes(measurer.measure(lab.state(strange), (GOAL,))) == {GOAL: "passed"}


def test_a_function_stands_for_its_parameters(provider, tmp_path):
    lab = Lab(provider, tmp_path, {"test_manners.py": MANNERS})
    report = lab.report({}, ("test_manners.py::test_parameter", "test_manners.py::TestOld"))
    assert report.valid
    assert len(report.outcomes) == 8
    assert report.outcome("test_manners.py::TestOld") is Outcome.FAILED
    assert report.passed("test_manners.py::test_parameter")


def test_a_module_that_cannot_be_imported_is_an_error_and_the_rest_runs(provider, tmp_path):
    lab = Lab(provider, tmp_path, {**PROJECT, "test_broken.py": "import nothing_like_it\n"})
    measurer = lab.measurer()
    assert lab.baseline.valid
    assert lab.baseline.outcomes["test_broken.py"] is Outcome.ERROR
    assert lab.baseline.passed(DOUBLE)
    report = measurer.measure(lab.base, ("test_broken.py::test_x",))
    assert report.outcome("test_broken.py::test_x") is Outcome.ERROR
    repaired = measurer.measure(lab.state({"nothing_like_it.py": ""}), ("test_broken.py",))
    assert "no tests were collected" in repaired.problem


def test_flaky_tests_are_listed(provider, tmp_path):
    flaky = "import pathlib, time\n\n\ndef test_time():\n    assert int(time.time() * 1e6) % 2\n"
    lab = Lab(
        provider,
        tmp_path,
        {
            **PROJECT,
            "tests/test_flaky.py": "".join(
                [flaky, *(f"\n\ndef test_time{i}():\n    test_time()\n" for i in range(30))]
            ),
        },
    )
    lab.measurer()
    assert lab.baseline.flaky
    assert all(test.startswith("tests/test_flaky.py::") for test in lab.baseline.flaky)


def test_a_known_state_is_not_measured_again(lab, measurer):
    state = lab.state({"calc.py": FIXED + "\n# once\n"})
    assert measurer.measure(state) is measurer.measure(state)
    assert measurer.measure_afresh(state) is not measurer.measure(state)


# ---- time


@pytest.mark.slow
def test_a_loop_ends_by_its_own_cpu_time_and_nothing_follows(lab, measurer):
    limits = replace(measurer.rules.limits, cpu_s=1.0, wall_s=1000.0, run_s=1000.0, timeouts=1)
    rules = replace(measurer.rules, limits=limits)
    report = run_suite(lab.provider, lab.task, lab.state({"calc.py": LOOPS}), lab.base, (GOAL, DOUBLE), rules)
    assert outcomes(report) == {GOAL: "timeout", DOUBLE: "skipped"}
    assert report.valid


@pytest.mark.slow
def test_a_loop_in_a_whole_run_costs_only_its_own_test(lab, measurer):
    report = measurer.measure(lab.state({"calc.py": LOOPS}))
    assert outcomes(report) == {GOAL: "timeout", DOUBLE: "passed", NOTHING: "passed"}


@pytest.mark.slow
def test_a_loop_that_swallows_everything_ends(lab, measurer):
    stubborn = CALC.replace("    return a - b\n", STUBBORN)
    report = measurer.measure(lab.state({"calc.py": stubborn}), (GOAL,))
    assert outcomes(report) == {GOAL: "timeout"}
    assert report.valid


@pytest.mark.slow
def test_sleeping_for_ever_ends_by_the_clock(lab, measurer):
    sleepy = lab.state({"calc.py": CALC.replace("return a - b", "import time; time.sleep(1000)")})
    rules = replace(measurer.rules, limits=replace(measurer.rules.limits, wall_s=1.0))
    report = run_suite(lab.provider, lab.task, sleepy, lab.base, (GOAL,), rules)
    assert outcomes(report) == {GOAL: "timeout"}


def timed(measurer, run_s):
    return replace(measurer.rules, limits=replace(measurer.rules.limits, run_s=run_s))


@pytest.mark.slow
def test_a_test_that_sleeps_when_the_time_is_up_is_late_and_spoils_no_other(lab, measurer):
    sleepy = lab.state({"calc.py": CALC.replace("return a - b", "import time; time.sleep(1000)")})
    report = run_suite(lab.provider, lab.task, sleepy, lab.base, (), timed(measurer, 4.0))
    assert (report.valid, report.timed_out, report.complete, report.conclusive) == (True, False, False, False)
    assert sum(report.late.values()) + len(report.outcomes) == len(lab.baseline.outcomes)
    assert report.late[file_of(GOAL)] >= 1
    assert GOAL not in report.outcomes


def test_no_time_at_all_lists_the_tests(lab, measurer):
    report = run_suite(lab.provider, lab.task, lab.base, lab.base, (), timed(measurer, 0.0))
    assert report.valid
    assert not report.outcomes
    names = {test.split("[")[0] for test in lab.baseline.outcomes}  # parameters are not known before they are made
    assert report.late == Counter(map(file_of, names))


@pytest.mark.slow
def test_a_file_that_sleeps_while_it_is_imported_is_late(provider, tmp_path):
    lab = Lab(provider, tmp_path, PROJECT | {"tests/test_zzz.py": "import time\n\ntime.sleep(900)\n"})
    rules = replace(rules_for(provider, lab.task, lab.base), limits=replace(GENEROUS, run_s=5.0))
    report = run_suite(provider, lab.task, lab.base, lab.base, (), rules)
    assert report.valid
    assert report.late["tests/test_zzz.py"] == 1


@pytest.mark.slow
def test_slow_passing_tests_stretch_the_limits(provider, tmp_path):
    lab = Lab(provider, tmp_path, {"test_slow.py": "import time\n\n\ndef test_slow():\n    time.sleep(0.5)\n"})
    assert lab.measurer().rules.limits.cpu_s > 4.9


# ---- what is not believed


@pytest.mark.parametrize(
    ("why", "source"),
    [
        ("broke off", "import os\nos._exit(0)\n"),
        ("broke off", CALC.replace("return a - b", "import os; os._exit(0)")),
        ("broke off", CALC.replace("return a - b", "import os; os.kill(os.getpid(), 9)")),
        ("status 3", "import sys\nsys.exit(0)\n"),
        ("command's exit code is 0", "import atexit, os\natexit.register(os._exit, 0)\n" + CALC),
    ],
)
def test_a_run_that_does_not_come_to_its_end_is_not_valid(lab, measurer, why, source):
    report = measurer.measure(lab.state({"calc.py": source}))
    assert not report.valid
    assert why in report.problem
    assert report.passes == ()


def test_the_test_that_was_running_when_the_run_broke_off_is_named(lab, measurer):
    report = measurer.measure(lab.state({"calc.py": CALC.replace("return a - b", "import os; os._exit(0)")}))
    assert report.outcomes[GOAL] is Outcome.ERROR
    assert GOAL in report.problem


def test_lines_of_somebody_else_spoil_the_report(lab, measurer):
    forge = (
        "import glob, os\npaths = glob.glob('/tmp/*') + glob.glob('/tmp/*/*')\n"
        "for path in filter(os.path.isfile, paths):\n    with open(path, 'a') as file:\n"
        '        file.write(\'{"kind": "end"}\\n\')\n'
    )
    report = measurer.measure(lab.state({"calc.py": forge + FIXED}))
    assert not report.valid
    assert "something else" in report.problem


def test_a_goal_that_is_gone_is_not_valid(lab, measurer):
    report = measurer.measure(lab.base, (GOAL, "tests/test_calc.py::test_nothing"))
    assert not report.valid
    assert "not reported: tests/test_calc.py::test_nothing" in report.problem


def test_tests_of_the_agent_do_not_count(lab, measurer):
    added = {"calc.py": FIXED, "tests/test_new.py": "def test_new():\n    assert False\n"}
    assert outcomes(measurer.measure(lab.state(added))) == {GOAL: "passed", DOUBLE: "passed", NOTHING: "passed"}


def test_what_an_agent_left_outside_the_workspace_has_no_say(lab, measurer):
    with lab.provider.at(lab.base) as box:
        box.write("/tmp/left", b"x")
        box.write("calc.py", ("import os\n\nassert not os.path.exists('/tmp/left')\n" + FIXED).encode())
        state = box.snapshot()
    assert measurer.measure(state).failures == ()


def test_task_patterns_are_protected(provider, tmp_path):
    files = {
        **PROJECT,
        "data/numbers.txt": "3",
        "test_data.py": "def test_it():\n    assert open('data/numbers.txt').read() == '4'\n",
    }
    lab = Lab(provider, tmp_path, files)
    assert lab.report({"data/numbers.txt": "4"}).passed("test_data.py::test_it")
    lab.task = replace(lab.task, protected_paths=("data",))
    assert not lab.report({"data/numbers.txt": "4"}).passed("test_data.py::test_it")


# ---- commands


@pytest.mark.parametrize(
    "command",
    slow_but(
        [
            "make check",
            f"PYTHONPATH=src {sys.executable} -m pytest -q --maxfail=1 -p no:cacheprovider tests",
        ],
        [
            f"PYTHONPATH=src {sys.executable} -m pytest -q tests",
            f"PYTEST_ADDOPTS=-v PYTHONPATH=src {sys.executable} -m pytest tests",
            f"cd . && PYTHONPATH='src' {sys.executable} -m pytest -x -q tests",
            "make check",
            f"PYTHONPATH=src {sys.executable} -m pytest -q -p xdist -n 2 tests",
            f"PYTHONPATH=src {sys.executable} -m pytest -q --maxfail=1 -p no:cacheprovider tests",
        ],
    ),
)
def test_the_plugin_reports_whatever_the_command_sets(provider, tmp_path, command):
    makefile = f"check:\n\tPYTHONPATH=src {sys.executable} -m pytest -q tests\n"
    files = {"src/calc.py": CALC, "tests/test_calc.py": TESTS, "Makefile": makefile}
    lab = Lab(provider, tmp_path, files, command)
    assert outcomes(find_baseline(provider, lab.task, lab.base)) == {
        GOAL: "failed",
        DOUBLE: "passed",
        NOTHING: "passed",
    }


def test_another_runner_is_read_by_its_exit_code(provider, tmp_path):
    script = "import calc, sys\nsys.exit(calc.add(1, 2) != 3)\n"
    lab = Lab(provider, tmp_path, {"calc.py": CALC, "check.py": script}, f"{sys.executable} check.py")
    measurer = lab.measurer()
    assert lab.baseline.adapter == "exit-code"
    assert outcomes(lab.baseline) == {"test-command": "failed"}
    assert measurer.measure(lab.state({"calc.py": FIXED})).passed("test-command")
    assert not measurer.measure(lab.state({"check.py": ""})).passed("test-command")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-program --all", "cannot be run"),
        (f"{PYTEST} tests/nowhere.py", "does not give a result"),
        (f"{PYTEST} -k nothing_like_it", "collects no tests"),
        (f"{sys.executable} -S -c 'import pytest_is_not_here' pytest", "does not give a result"),
        (f"{PYTEST} || true", "exit code is 0, but 1 test failed"),
    ],
)
def test_a_command_that_cannot_be_measured_is_refused_with_a_remedy(provider, tmp_path, command, says):
    lab = Lab(provider, tmp_path, PROJECT, command)
    with pytest.raises(MeasureError, match=says) as raised:
        find_baseline(provider, lab.task, lab.base)
    assert "--test" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_pythons_of_a_base_state_are_looked_for_once(lab: Lab) -> None:
    first, baseline = rules_for(lab.provider, lab.task, lab.base), lab.baseline
    forks = lab.provider.forked.times
    assert rules_for(lab.provider, lab.task, lab.base, baseline).site_packages == first.site_packages != ()
    assert lab.provider.forked.times == forks


def test_options_that_pytest_does_not_know_are_named_with_the_remedy(provider, tmp_path):
    lab = Lab(provider, tmp_path, {"calc.py": CALC, "test_calc.py": TESTS}, f"{PYTEST} --cov=calc --cov-branch")
    with pytest.raises(MeasureError, match=r"does not recognise: --cov=calc --cov-branch; .* --setup 'pip install"):
        lab.measurer()


def test_a_run_needs_no_baseline(lab):
    """Grading measures a patch against a reference state, of which nothing is known before."""
    rules = rules_for(lab.provider, lab.task, lab.base)
    report = run_suite(
        lab.provider, lab.task, lab.state({"calc.py": FIXED, "tests/test_calc.py": None}), lab.base, rules=rules
    )
    assert report.failures == ()
    assert len(report.passes) == 3


# ---- lines


@pytest.fixture(scope="module")
def spectrum(provider, tmp_path_factory):
    loop = "\n\ndef forever():\n    count = 0\n    while True:\n        count += 1\n"
    files = {
        "calc.py": CALC + loop,
        "conftest.py": CONFTEST,
        "tests/test_calc.py": TESTS,
        "tests/test_loop.py": "from calc import forever\n\n\ndef test_loop():\n    forever()\n",
    }
    lab = Lab(provider, tmp_path_factory.mktemp("traced"), files, f"{PYTEST} -p pytest_timeout --timeout=2")
    lab.measurer()
    return trace(provider, lab.task, lab.base, lab.baseline)


@pytest.mark.slow
def test_the_spectrum_holds_the_lines_of_each_test(spectrum):
    assert spectrum.problem == ""
    assert spectrum.executed[GOAL] == {"calc.py": (5,)}
    assert spectrum.executed[DOUBLE] == {"calc.py": (9,)}
    assert spectrum.imported["calc.py"][-1] == 12
    assert spectrum.outcomes[GOAL] is Outcome.FAILED


@pytest.mark.slow
def test_lines_are_recorded_where_the_tests_themselves_measure_coverage(provider, tmp_path):
    files = {"calc.py": CALC, "conftest.py": CONFTEST, "tests/test_calc.py": TESTS}
    lab = Lab(provider, tmp_path, files, f"{PYTEST} -p pytest_cov.plugin --cov=calc --cov-branch --cov-fail-under=1")
    lab.measurer()
    spectrum = trace(provider, lab.task, lab.base, lab.baseline)
    assert (spectrum.problem, spectrum.executed[GOAL]) == ("", {"calc.py": (5,)})


@pytest.mark.slow
def test_that_another_program_runs_the_code_is_told(provider, tmp_path):
    asks = "import subprocess\n\n\ndef test_add():\n    code = 'import calc; print(calc.add(1, 2))'\n"
    asks += "    assert subprocess.run(['python3', '-c', code], capture_output=True).stdout == b'4\\n'\n"
    lab = Lab(provider, tmp_path, {"calc.py": CALC, "test_add.py": asks}, PYTEST)
    lab.measurer()
    assert "other processes ran the code" in trace(provider, lab.task, lab.base, lab.baseline).problem


@pytest.mark.slow
def test_a_test_that_loops_for_ever_still_has_its_lines(spectrum):
    assert spectrum.outcomes["tests/test_loop.py::test_loop"] is Outcome.TIMEOUT
    assert spectrum.executed["tests/test_loop.py::test_loop"] == {"calc.py": (13, 14, 15)}


@pytest.mark.slow
def test_a_spectrum_survives_a_journal(spectrum):
    assert Spectrum.from_json(json.loads(json.dumps(spectrum.to_json()))) == spectrum


def test_a_spectrum_that_was_not_recorded_is_empty():
    assert Spectrum.from_json({}) == Spectrum()


def test_a_measurer_for_a_known_baseline_runs_nothing(lab, measurer):
    again = Measurer(lab.provider, lab.task, lab.base, lab.baseline)
    assert again.rules == measurer.rules
