"""What a run tells first: how the tests are run, which of them have to pass, and which modules are missing."""

import os
import sys
from pathlib import Path

import pytest

from agent.analysis.report.baseline import missing_modules
from agent.analysis.report.summary import tally
from agent.cli.next_step import program_name
from agent.measure import Outcome, SuiteReport
from tests import commands
from tests.projects import commit

PLAIN = ("-c", 'sandbox.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"', "-c", "measure.baseline_runs=1")
WRONG = {
    "calc.py": "def larger(a, b):\n    return a if a < b else b\n",
    "test_calc.py": "from calc import larger\n\n\ndef test_larger():\n    assert larger(1, 2) == 2\n\n\n"
    "def test_equal():\n    assert larger(3, 3) == 3\n",
}


@pytest.fixture
def ramify(tmp_path):
    """Runs a command in a checkout with these files, and one worker's worth of plugins."""

    def run(files, *argv):
        place = tmp_path / "repo"
        if not place.exists():
            commit(place, files)
        return commands.ramify([*argv, *(PLAIN if argv[0] == "fix" else ())], cwd=place, env=run.env)

    run.env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    return run


@pytest.mark.slow
def test_the_command_and_the_python_stand_before_the_first_result(ramify):
    lines = ramify(WRONG, "fix", "-c", "budget.max_nodes=1").stderr.splitlines()
    assert lines[1:4] == [
        "command  python3 -m pytest -q",
        f"python   {sys.executable} (of Ramify: no environment is active, and the checkout has no .venv)",
        "0.100  the repository as it is (goal 0/1, 1 passed, 1 failed)",
    ]


@pytest.mark.slow
def test_without_a_test_whatever_fails_is_the_goal_and_is_named(ramify):
    said = ramify(WRONG, "fix")
    assert said.returncode == 0, said.stderr
    assert "goal     1 test has to pass: test_calc.py::test_larger\n" in said.stderr
    shown = ramify(WRONG, "show").stdout
    assert "goal 0/1, 1 passed, 1 failed base" in shown
    assert "goal 1/1, 2 passed, 0 failed mutate: < -> > calc.py:2" in shown


def test_a_state_of_which_only_the_goal_tests_ran_has_no_other_counts():
    passed, failed = Outcome.PASSED, Outcome.FAILED
    assert tally(SuiteReport({"a": passed, "b": failed}, complete=False, asked=("a", "b")), ("a", "b")) == "goal 1/2"
    whole = SuiteReport({"a": passed, "b": passed, "c": failed})
    assert tally(whole, ("a", "b")) == "goal 2/2, 2 passed, 1 failed"
    assert tally(whole) == "2 passed, 1 failed"


def test_a_missing_module_with_the_name_of_a_package_of_ours_has_another_remedy():
    report = SuiteReport({"t.py": Outcome.ERROR}, messages={"t.py": "ModuleNotFoundError: No module named 'agent.it'"})
    assert list(missing_modules(report, ()))[-1].endswith("use an environment without it (--python DIR)")


def test_where_no_test_fails_there_is_nothing_to_fix(ramify):
    said = ramify({"test_a.py": "def test_a():\n    pass\n"}, "fix")
    assert (said.returncode, said.stdout) == (2, "")
    assert "no test fails, so there is nothing to fix" in said.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_goal_that_passes_already_is_told_so(ramify):
    said = ramify(WRONG, "fix", "test_calc.py::test_equal")
    assert said.returncode == 2
    assert "'test_calc.py::test_equal' passes already, so there is nothing to fix; without a test" in said.stderr


def test_missing_modules_are_told_once_with_the_remedy(ramify):
    wants = {f"test_{name}.py": "import nobody_has.it\n\n\ndef test_a():\n    pass\n" for name in "abcd"}
    said = ramify(WRONG | wants, "fix", "-c", "budget.max_nodes=1").stderr
    before, _, after = said.partition("missing  modules that the tests import: nobody_has (4 failures)\n")
    assert "the repository as it is" in before
    assert after.startswith('         install it in the sandbox with --setup "pip install PACKAGE", or')


@pytest.mark.slow
def test_tests_that_only_lack_a_package_are_left_out_of_the_goals_and_told_together(ramify):
    wants = {f"test_{name}.py": "import nobody_has.it\n\n\ndef test_a():\n    pass\n" for name in "abcd"}
    said = ramify(WRONG | wants, "fix")
    assert said.returncode == 0, said.stderr
    assert "goal     1 test has to pass: test_calc.py::test_larger\n" in said.stderr
    assert (
        "         4 other tests fail because a package is missing, which no patch can repair: not goals\n"
        in said.stderr
    )
    (note,) = [line for line in said.stderr.splitlines() if "cannot be imported" in line]
    assert "4 test files cannot be imported without nobody_has: install it in the sandbox with --setup" in note


def test_that_the_tests_import_an_installed_copy_of_the_project_is_told_with_the_remedy(ramify):
    files = {"src/click/__init__.py": "", "test_a.py": "import click\n\n\ndef test_a():\n    pass\n"}
    lines = ramify(WRONG | files, "fix").stderr.splitlines()
    (place,) = (number for number, line in enumerate(lines) if line.startswith("warning  the tests import click from "))
    assert lines[place].endswith("site-packages/click/__init__.py, not from the checkout: changes to it are not tested")
    assert "PYTHONPATH=src" in lines[place + 1]
    assert sum("so no change of it was tested" in line for line in lines) == 1


def test_where_all_failing_tests_lack_a_package_the_remedy_is_told(ramify):
    said = ramify({"test_a.py": "def test_a():\n    import nobody_has\n"}, "fix")
    assert said.returncode == 2, said.stderr
    assert "the failing tests fail only because of missing packages (nobody_has): install it" in said.stderr


def test_a_goal_in_a_file_that_lacks_a_package_is_refused_before_the_search(ramify):
    files = WRONG | {"test_a.py": "import nobody_has\n\n\ndef test_a():\n    pass\n"}
    said = ramify(files, "fix", "test_a.py::test_a")
    assert said.returncode == 2, said.stderr
    assert "which no patch can repair" not in said.stderr
    assert said.stderr.splitlines()[-1].startswith(
        "ramify: the goal test 'test_a.py::test_a' fails only because the package nobody_has is missing: install it"
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tests/nope.py::test_larger", "there is no file tests/nope.py"),
        ("test_cal.py::test_larger", "there is no file test_cal.py: did you mean test_calc.py?"),
    ],
)
def test_a_goal_in_a_file_that_does_not_exist_is_refused_before_the_tests_run(ramify, name, says):
    said = ramify(WRONG, "fix", "test_larger", name)
    assert (said.returncode, said.stderr.splitlines()[-1]) == (2, f"ramify: {says}")
    assert "the repository as it is" not in said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["./test_calc.py::test_larger", "repo/test_calc.py::test_larger", "test_larger"])
def test_the_path_of_a_goal_may_start_elsewhere(ramify, name):
    said = ramify(WRONG, "fix", name, "-c", "budget.max_nodes=1").stderr
    assert "goal     1 test has to pass: test_calc.py::test_larger\n" in said


@pytest.mark.slow
def test_one_goal_of_two_that_lacks_a_package_when_it_runs_is_refused_before_the_search(ramify):
    files = WRONG | {"test_a.py": "def test_a():\n    import nobody_has\n"}
    said = ramify(files, "fix", "test_larger", "test_a.py::test_a")
    assert said.returncode == 2, said.stderr
    assert "         1 goal fails only because they are missing: test_a.py::test_a\n" in said.stderr
    assert "'test_a.py::test_a' fails only because the package nobody_has is missing" in said.stderr.splitlines()[-1]


@pytest.mark.slow
def test_without_a_model_the_result_says_that_nobody_read_the_issue(ramify):
    said = ramify(WRONG, "solve", "--issue", "Totals are printed in red.", *PLAIN)
    assert said.returncode == 0, said.stderr
    assert "no model read the issue: the goals are the tests that failed before the search" in said.stderr
    assert "no model read" not in ramify({}, "solve", "--issue", "x", "--goal-test", "test_larger", *PLAIN).stderr


class TestNamingAnEnvironment:
    @pytest.fixture
    def environment(self, tmp_path):
        """An environment whose Python is ours, and says that it is used."""
        (tmp_path / "env" / "bin").mkdir(parents=True)
        (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
        for name in ("python", "python3"):
            program = tmp_path / "env" / "bin" / name
            program.write_text(f'#!/bin/sh\nUSED=1 exec {sys.executable} "$@"\n')
            program.chmod(0o755)
        return tmp_path / "env"

    @pytest.mark.slow
    def test_its_python_runs_the_tests(self, ramify, environment):
        asks = {"test_used.py": "import os\n\n\ndef test_used():\n    assert os.environ.get('USED')\n"}
        said = ramify(WRONG | asks, "fix", "-c", "budget.max_nodes=1", "--python", "../env").stderr
        assert f"python   {environment}/bin/python\n" in said
        assert "goal     1 test has to pass: test_calc.py::test_larger\n" in said

    @pytest.mark.slow
    def test_it_may_be_given_as_its_program(self, ramify, environment):
        said = ramify(WRONG, "fix", "-c", "budget.max_nodes=1", "--python", "../env/bin/python3").stderr
        assert f"python   {environment}/bin/python\n" in said

    def test_what_is_none_is_refused(self, ramify):
        said = ramify(WRONG, "fix", "--python", "nowhere")
        assert (said.returncode, "--python nowhere is not a Python environment" in said.stderr) == (2, True)

    def test_an_image_has_its_own_python(self, ramify, environment):
        said = ramify(WRONG, "fix", "--python", environment, "--image", "python:3")
        assert (said.returncode, "the tests run in an image; omit --python" in said.stderr) == (2, True)


class TestTheNextStep:
    """The last line on stderr."""

    def last(self, said):
        return said.stderr.splitlines()[-1]

    @pytest.mark.slow
    def test_a_patch_that_was_found_can_be_applied_and_then_looked_at(self, ramify, tmp_path):
        found = self.last(ramify(WRONG, "fix"))
        assert found.startswith("next     ramify apply 2")
        assert ramify(WRONG, *found.split()[2:]).stderr == f"applied to {tmp_path / 'repo'}\n"

    @pytest.mark.slow
    def test_a_patch_that_was_applied_can_be_looked_at(self, ramify, tmp_path):
        assert self.last(ramify(WRONG, "fix", "--apply")) == f"next     git -C {tmp_path / 'repo'} diff"

    @pytest.mark.slow
    def test_a_search_that_met_a_limit_can_go_on_with_a_greater_one(self, ramify):
        said = self.last(ramify(WRONG, "fix", "-c", "budget.max_nodes=1"))
        assert said.startswith("next     ramify resume 2")
        assert " --max-states N, with a higher limit (it applies to the whole run)" in said

    @pytest.mark.slow
    def test_how_often_states_were_forked_is_told_to_who_asks_for_more(self, ramify):
        assert "\nstates " not in ramify(WRONG, "fix").stderr
        assert "\nstates   forked " in ramify(WRONG, "fix", "-v").stderr

    def test_the_program_is_named_as_the_shell_finds_it(self, monkeypatch, tmp_path):
        program = tmp_path / "env" / "bin" / "ramify"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(program), "fix"])
        monkeypatch.setenv("PATH", str(tmp_path))
        assert program_name() == "env/bin/ramify"
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        assert program_name() == str(program)
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        assert program_name() == "ramify"

    @pytest.mark.slow
    def test_a_search_without_a_model_that_met_a_limit_may_be_begun_with_one(self, ramify):
        assert "a new run with a model: --model NAME" in self.last(ramify(WRONG, "fix", "-c", "budget.max_nodes=1"))

    @pytest.mark.slow
    def test_a_patch_whose_checkout_is_gone_is_refused_with_the_remedy(self, ramify, tmp_path):
        name = self.last(ramify(WRONG, "fix")).split()[-1]
        (tmp_path / "repo").rename(tmp_path / "moved")
        said = commands.ramify(["apply", name], cwd=tmp_path, env=ramify.env)
        assert said.returncode == 2
        assert f"{tmp_path / 'repo'}: the directory no longer exists; name a checkout with --repo" in said.stderr
        assert commands.ramify(["apply", name, "--repo", "moved"], cwd=tmp_path, env=ramify.env).returncode == 0

    @pytest.mark.slow
    def test_outside_a_checkout_nothing_is_applied_that_was_not_named(self, ramify, tmp_path):
        name = self.last(ramify(WRONG, "fix")).split()[-1]
        said = commands.ramify(["apply"], cwd=tmp_path, env=ramify.env)
        assert said.returncode == 2
        assert f"not a git checkout; name the run: ramify apply {name} (the last one)" in said.stderr

    @pytest.mark.slow
    def test_quietly_none_is_named(self, ramify):
        assert "next" not in ramify(WRONG, "fix", "-q").stderr
