"""tox and nox as a test command: the tests inside are found, run with what is installed, and reported one by one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.budget import Stop
from agent.build.composition import start
from agent.config import load
from agent.measure import SuiteReport
from agent.measure.automation import Inner, inner_command, is_tool
from agent.measure.automation.calls import runs_tests
from agent.measure.measurer import find_baseline
from agent.run.action_log import task_of
from agent.run.run import Run
from agent.solver.result import Result
from agent.task import Task, resolve_task
from sandboxes import Provider, Workspace
from tests.measuring import ENV, GOAL, PROJECT
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

PYTHON = f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {sys.executable} "$@"\n'
TOX = """[tox]
envlist = lint, py{311,312}-{plain,full}
[base]
options = -q
[testenv]
deps = pytest
set_env =
    plain: KIND = plain
    KIND2 = {env:KIND:none}
    ROOT = {toxinidir}
commands_pre = python -m build
commands =
    flake8 calc.py
    !full: python -m pytest {[base]options} {posargs:tests -k "a or b"}
    full: python -m pytest {env:WHICH:tests} \\
        --tb=no  # all of it
    - python -c 'print(2)'
[testenv:lint]
commands = flake8 calc.py
[testenv:unit]
changedir = tests
commands = python -m unittest {posargs:discover}
[testenv:fancy]
commands = python -m pytest {plugin_place}
"""
NOX = """import nox

nox.options.sessions = ["lint", "tests"]
WHERE = ["tests"]


@nox.session
def lint(session):
    session.install("flake8")
    session.run("flake8", "calc.py")


@nox.session(python=["3.11", "3.12"], name="tests")
@nox.parametrize("colour", ["red", "blue"])
def all_tests(session, colour):
    session.install("-e", ".[test]")
    version = session.run("python", "-V", silent=True)
    arguments = session.posargs or WHERE
    if session.posargs:
        arguments = ["-x", *arguments]
    session.run("coverage", "erase")
    session.run("python", "-m", "pytest", f"-{'q'}", *arguments, env={"KIND": "nox"})


@nox.session
def either(session):
    if session.python == "3.11":
        session.run("pytest", "-x")
    else:
        session.run("pytest")


@nox.session
def each(session):
    for folder in ("a", "b"):
        session.run("pytest", folder)


@nox.session
def below(session):
    with session.chdir("tests"):
        session.run("python", "-m", "unittest")
"""
TOML = """[tool.tox]
env_list = ["py311"]
[tool.tox.env_run_base]
set_env = { KIND = "toml" }
commands = [["python", "-m", "pytest", { replace = "posargs", default = ["tests"], extend = true }]]
[tool.tox.env.old]
commands = [["python", "-m", "pytest", "{posargs:tests}"]]
"""
LEGACY = '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ncommands = pytest a\n"""\n'
DEEP = f"import nox\n@nox.session\ndef tests(session):\n    session.run('pytest'{' + []' * 3000})\n"
SESSION = "import nox\n@nox.session\ndef tests(session):\n    {}\n"
DOUBLING = SESSION.format("a = ['x']\n" + "    a = [*a, *a]\n" * 60 + "    session.run('pytest', *a)")
STRANGE = (
    "session.run('pytest', *1)",
    "session.run('pytest', env='x')",
    "session.run('pytest', env={**A})",
    "session.run('pytest', env={'a': []})",
    "session.run('pytest', [])",
    "session.run('pytest', session.python)",
    "session.run(f'{[]}')",
    "session.chdir([])",
    "session.run()",
    "pass",
)
TOML_WORD = "[tool.tox.env.a]\ncommands = ['pytest']\n"
NO_TABLES = ("tool = 1", "[tool]\ntox = 1", TOML_WORD, LEGACY.replace("[testenv]", "x"))
ASKED = """#!/bin/sh
echo "$@" >> asked
cat <<END
ROOT: a word of tox
[testenv:py311]
commands =
  $PWD/.tox/py311/bin/python -m pytest tests -k 'a b'
  - python -c 'print(2)'
set_env =
  KIND=told
  PYTHONHASHSEED=1234
  TOX_ENV_NAME=py311
change_dir = $PWD
env_dir = $PWD/.tox/py311
END
"""


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755 if text.startswith("#!") else 0o644)
    return folder


class Looking:
    """Looks through commands in one project."""

    def __init__(self, provider: Provider, folder: Path, files: Mapping[str, str]) -> None:
        self.provider = provider
        workspace = Workspace(path=write(folder, files), env=ENV, mount="/workspace")
        self.base = provider.create(workspace)

    def __call__(self, command: str) -> Inner | None:
        with self.provider.at(self.base) as box:
            return inner_command(box, command)

    def line(self, command: str) -> str:
        found = self(command)
        return found.command if found else ""


@pytest.fixture(scope="module")
def look(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Looking:
    files = {"tox.ini": TOX, "noxfile.py": NOX, "calc.py": "", "tests/test_a.py": ""}
    return Looking(provider, tmp_path_factory.mktemp("project"), files)


PLAIN = "KIND=plain KIND2=plain ROOT=/workspace python -m pytest -q"


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("./tox -e py311-plain", f"{PLAIN} tests -k 'a or b'"),
        ("./tox run -q -epy311-plain -- tests/test_a.py -k 'a b'", f"{PLAIN} tests/test_a.py -k 'a b'"),
        ("./tox -e py312-plain,lint -p auto --", f"{PLAIN}"),
        ("./tox -e py311-full", "KIND2=none ROOT=/workspace python -m pytest tests --tb=no"),
        ("WHICH=tests/test_a.py ./tox -e py311-full", "python -m pytest tests/test_a.py --tb=no"),
        ("./tox", f"{PLAIN} tests -k 'a or b'"),
        ("TOXENV=py311-plain ./tox", f"{PLAIN} tests -k 'a or b'"),
        ("./tox -e unit", "cd tests && KIND2=none ROOT=/workspace python -m unittest discover"),
        ("nox -s tests", "KIND=nox python -m pytest -q tests"),
        ("nox", "KIND=nox python -m pytest -q tests"),
        ("python3 -m nox --sessions tests-3.12 -- -k add", "KIND=nox python -m pytest -q -x -k add"),
        ("nox -s below", "cd tests && python -m unittest"),
    ],
)
def test_a_tool_is_looked_through_to_the_command_that_runs_the_tests(look: Looking, command: str, inner: str) -> None:
    assert look.line(command).endswith(inner)
    assert "TOXENV" not in look.line(command)


@pytest.mark.parametrize(
    "command",
    [
        "./tox -e lint",
        "./tox -e fancy",
        "./tox -e py311-plain -x testenv.commands=pytest",
        "./tox somewhere",
        "./tox -e py311-plain && true",
        "./tox -c elsewhere.ini",
        "nox -s lint",
        "nox -s either",
        "nox -s each",
        "nox -s none",
        "nox -t style",
        "make test",
        "python -m pytest",
        "'",
    ],
)
def test_what_is_not_plain_is_left_as_it_is(look: Looking, command: str) -> None:
    assert look(command) is None


def test_a_command_that_runs_no_tool_costs_no_look_at_the_base_state() -> None:
    assert not any(map(is_tool, ("python -m pytest", "make tox", "cd x; tox", "")))
    assert all(map(is_tool, ("tox", "A=1 nox -s x", "/opt/bin/tox -e a", "python3.11 -m tox")))


def test_it_is_said_what_is_run_and_what_is_not(look: Looking) -> None:
    found = look("./tox -e py311-full")
    assert found is not None
    assert "'./tox -e py311-full' itself is not run; the tests run with its inner command" in found.explanation
    assert "with the installed packages" in found.explanation
    assert found.explanation.endswith("its other commands are left out: flake8 calc.py; python -c 'print(2)'")


@pytest.mark.parametrize(
    ("name", "text", "command", "inner"),
    [
        ("pyproject.toml", TOML, "./tox", "KIND=toml python -m pytest tests"),
        ("pyproject.toml", TOML, "./tox -e old -- -x", "KIND=toml python -m pytest -x"),
        ("setup.cfg", "[metadata]\nname = a\n[tox:tox]\n[testenv]\ncommands = pytest\n", "./tox -e py", "pytest"),
        ("setup.cfg", "[metadata]\nname = a\n[testenv]\ncommands = pytest\n", "./tox -e py", ""),
        ("pyproject.toml", LEGACY, "./tox -e x", "pytest a"),
        ("ci/tox.ini", "[testenv]\ncommands = pytest\n", "./tox -c ci/tox.ini -e py", "cd ci && pytest"),
        ("tox.ini", "[testenv]\ncommands = pytest {posargs\n", "./tox -e py", "pytest '{posargs'"),
        ("tox.ini", "[testenv]\ncommands = pytest {[testenv]commands}\n", "./tox -e py", ""),
        ("tox.ini", "commands = pytest\n", "./tox -e py", ""),
        ("noxfile.py", "def tests(session:\n", "nox", ""),
        ("tox.ini", "[tox]\nenvlist = " + "{a,b}" * 200 + "\n[testenv]\ncommands = flake8\n", "./tox", ""),
        ("noxfile.py", DEEP, "nox", ""),
        ("noxfile.py", DOUBLING, "nox", ""),
        *[("noxfile.py", SESSION.format(said), "nox", "") for said in STRANGE],
        *[("pyproject.toml", said, "./tox -e a", "") for said in NO_TABLES],
    ],
)  # fmt: skip
def test_every_form_of_the_files_is_read(
    provider: Provider, tmp_path: Path, name: str, text: str, command: str, inner: str
) -> None:
    assert Looking(provider, tmp_path, {name: text}).line(command) == inner


def test_tox_itself_is_asked_where_the_sandbox_has_it(provider: Provider, tmp_path: Path) -> None:
    look = Looking(provider, tmp_path, {"bin/tox": ASKED, "tox.ini": "[testenv]\ncommands = pytest by-file\n"})
    assert look.line("bin/tox -e py311") == "KIND=told python -m pytest tests -k 'a b'"


@pytest.mark.parametrize("asked", ["py311-plain", "py312-full", "unit", "py311-plain -- -x 'a b'", "unit --", "lint"])
def test_the_files_are_read_as_tox_itself_reads_them(look: Looking, asked: str) -> None:
    pytest.importorskip("tox")
    assert look.line(f"{sys.executable} -m tox -e {asked}") == look.line(f"./tox -e {asked}")


def test_an_environment_of_the_tool_comes_first_where_there_is_one(provider: Provider, tmp_path: Path) -> None:
    files = {"bin/tox": ASKED, ".tox/py311/bin/python": PYTHON, ".nox/tests-3-12/bin/pytest": PYTHON}
    look = Looking(provider, tmp_path, {**files, "noxfile.py": NOX.replace('"python", "-m", "pytest"', '"pytest"')})
    line = look.line("bin/tox -e py311")
    assert line.startswith("KIND=told PATH=/workspace/.tox/py311/bin:/")
    assert line.endswith(" /workspace/.tox/py311/bin/python -m pytest tests -k 'a b'")
    assert look.line("nox -s tests").endswith(" /workspace/.nox/tests-3-12/bin/pytest -q tests")
    assert "with the packages of /workspace/.nox/tests-3-12" in (look("nox -s tests") or Inner("", "")).explanation


@pytest.mark.parametrize(
    ("words", "does"),
    [
        ("pytest -q", True),
        ("/a/bin/python -W error -m pytest", True),
        ("coverage run --source calc -m unittest", True),
        ("python -m coverage run -p manage.py test", True),
        ("python tests/runtests.py", True),
        ("./runtests.py", True),
        ("bin/test -C", True),
        ("django-admin test --settings=a", True),
        ("python manage.py check", False),
        ("pip install pytest", False),
        ("python -c pytest", False),
        ("flake8 tests/runtests.py", False),
        ("coverage report", False),
        ("", False),
    ],
)
def test_only_what_plainly_runs_tests_counts(words: str, does: bool) -> None:
    assert runs_tests(words.split()) is does


UNITTEST = """import unittest

from calc import add, double


class Calc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_double(self):
        self.assertEqual(double(2), 4)
"""
TESTED = {
    "tox and pytest": (
        "tox -e py311",
        {"tox.ini": "[testenv]\ndeps = pytest\ncommands = python -m pytest -q -p no:cacheprovider {posargs}\n"},
        GOAL,
    ),
    "tox, pytest and an environment": (
        "tox -e py311 -- tests",
        {
            "tox.ini": "[testenv]\ncommands = pip list\n    {envpython} -m pytest -q -p no:cacheprovider {posargs}\n",
            ".tox/py311/bin/python": PYTHON,
        },
        GOAL,
    ),
    "tox and unittest": (
        "tox -e py311",
        {"tox.ini": "[testenv]\ncommands = python -m unittest {posargs:discover}\n", "test_calc.py": UNITTEST},
        "test_calc.py::Calc::test_add",
    ),
    "nox and pytest": (
        "nox -s tests -- -p no:cacheprovider",
        {
            "noxfile.py": "import nox\n\n\n@nox.session\ndef tests(session):\n    session.install('.')\n"
            "    session.run('python', '-m', 'pytest', '-q', *session.posargs)\n"
        },
        GOAL,
    ),
}


def begun(provider: Provider, folder: Path, command: str, files: Mapping[str, str]) -> tuple[Task, SuiteReport]:
    """The task as it fits its base state, and what the tests say there."""
    workspace = Workspace(path=write(folder, {**PROJECT, **files}), env=ENV)
    task = Task("calc", "It is wrong.", workspace, command, goal_failing=True)
    base = provider.create(workspace)
    task = resolve_task(task, provider, base)
    return task, find_baseline(provider, task, base, 1)


@pytest.mark.parametrize(
    "name", slow_but(["tox, pytest and an environment", "tox and unittest", "nox and pytest"], TESTED)
)
def test_the_tests_that_a_tool_runs_are_reported_one_by_one(provider: Provider, tmp_path: Path, name: str) -> None:
    command, files, goal = TESTED[name]
    task, report = begun(provider, tmp_path, command, files)
    assert report.failures == (goal,)
    assert len(report.outcomes) > 1
    assert task.framework == ("unittest" if "unittest" in name else "")
    assert report.adapter == (task.framework or "pytest")


@pytest.mark.slow
def test_how_the_tests_are_run_is_said_once_and_a_resumed_run_runs_them_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command, files, _ = TESTED["tox and pytest"]
    workspace = Workspace(path=write(tmp_path / "project", {**PROJECT, **files}), env=ENV)
    task = Task("calc", "It is wrong.", workspace, command, goal_failing=True)

    def sit(max_nodes: int) -> Result:
        flags = {"sandbox.kind": "namespace", "budget.max_nodes": max_nodes, "measure.baseline_runs": 1}
        return start(task, load(flags=flags), tmp_path / "run")

    with caplog.at_level(logging.WARNING, "agent.task"):
        assert sit(1).stop is Stop.NODES
        assert sit(20).status == "solved"
    assert [record.message.partition(";")[0] for record in caplog.records] == ["'tox -e py311' itself is not run"]
    assert task_of(Run.read(tmp_path / "run")).test_command == "python -m pytest -q -p no:cacheprovider"
