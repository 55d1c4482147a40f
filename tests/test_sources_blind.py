"""A solver is told nothing of the hidden tests, of whatever set a row is; whoever grades runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from agent.task import dump_task
from benchmarks.data.instances import Instance
from benchmarks.data.sources import open_source
from benchmarks.data.sources.blinding import names_hidden
from benchmarks.data.sources.scripts import eval_script
from benchmarks.data.sources.swebench import swebench
from tests import rows
from tests.test_sources import ROWS

DJANGO_TESTS = rows.TEST_PATCH.replace("tests/test_calc.py", "tests/calc_hidden/tests.py")
DJANGO = {
    **rows.VERIFIED,
    "repo": "django/django",
    "instance_id": "django__django-11099",
    "test_patch": DJANGO_TESTS,
    "FAIL_TO_PASS": json.dumps(["test_add (calc_hidden.tests.CalcTests)"]),
    "PASS_TO_PASS": json.dumps(["test_twice (calc_hidden.tests.CalcTests)"]),
}
SYMPY = {
    **rows.VERIFIED,
    "repo": "sympy/sympy",
    "instance_id": "sympy__sympy-20590",
    "test_patch": rows.TEST_PATCH.replace("tests/test_calc.py", "sympy/core/tests/test_calc.py"),
    "FAIL_TO_PASS": json.dumps(["test_add"]),
    "PASS_TO_PASS": json.dumps(["test_twice"]),
}
DJANGO_5 = {**rows.FIFTH, **{key: DJANGO[key] for key in ("repo", "instance_id", "test_patch")}}
DJANGO_5 |= {"FAIL_TO_PASS": json.loads(DJANGO["FAIL_TO_PASS"]), "PASS_TO_PASS": [], "log_parser": "parse_log_django"}
TELLING = {
    "SWE-rebench tells": {
        **rows.REBENCH,
        "install_config": {**rows.REBENCH["install_config"], "test_cmd": "pytest -rA tests/test_calc.py"},
    },
    "SWE-rebench-V2 tells": {
        **rows.REBENCH_2,
        "install_config": {**rows.REBENCH_2["install_config"], "test_cmd": ["make", "ctest -R test_add"]},
    },
    "SWE-bench-Live tells": {**rows.LIVE, "test_cmds": ["python -m pytest -rA ./tests/test_calc.py::test_add"]},
}
CASES: dict[str, dict[str, Any]] = {
    **{f"{name} {number}": row for name, them in ROWS.items() for number, row in enumerate(them)},
    "Django": DJANGO,
    "Django of SWE-bench 5": DJANGO_5,
    "SymPy": SYMPY,
    **TELLING,
}


def opened(folder: Path, row: dict[str, Any]) -> Instance:
    """As a batch reads it."""
    (folder / "rows.json").write_text(json.dumps([row]))
    (instance,) = open_source(str(folder / "rows.json"), folder / "clones").instances()
    assert not instance.fault
    return instance


def hidden_names(row: dict[str, Any]) -> set[str]:
    """Every file that the test patch touches and every hidden test, by its whole id and by its own name."""
    files = set(re.findall(r"^\+\+\+ b/(\S+)$", row.get("test_patch") or "", re.MULTILINE))
    ids = {"test_add", "test_twice", "TestAdd", "TestTwice", "TestNew"}
    for column in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        given = row.get(column) or []
        ids |= set(json.loads(given) if isinstance(given, str) else given)
    modules = {file[:-3].replace("/", ".").removeprefix("tests.") for file in files if file.endswith(".py")}
    return files | modules | ids | {PurePosixPath(file).name for file in files if "test_" in file}


@pytest.mark.parametrize("name", CASES)
def test_no_file_and_no_name_of_a_hidden_test_is_anywhere_in_what_a_solver_is_given(name: str, tmp_path: Path) -> None:
    instance = opened(tmp_path, CASES[name])
    told = json.dumps(dump_task(instance.task))
    assert instance.mode == "hidden"
    assert {each for each in hidden_names(CASES[name]) if each in told} == set()


@pytest.mark.parametrize(
    ("row", "command"),
    [
        (DJANGO, "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1"),
        (DJANGO_5, "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1"),
        (SYMPY, "bin/test -C --verbose"),
        (rows.VERIFIED, "python -m pytest -q -p no:cacheprovider"),
        (TELLING["SWE-rebench tells"], "python -m pytest -q -p no:cacheprovider"),
        (TELLING["SWE-rebench-V2 tells"], "true"),
        (TELLING["SWE-bench-Live tells"], "python -m pytest -q -p no:cacheprovider"),
        (rows.REBENCH, rows.REBENCH["install_config"]["test_cmd"]),
    ],
)
def test_a_solver_runs_all_tests_by_the_repositorys_own_command(
    row: dict[str, Any], command: str, tmp_path: Path
) -> None:
    assert opened(tmp_path, row).task.test_command == command


GRADED = {
    "SWE-bench 0": ("command", "-q -p no:cacheprovider tests/test_calc.py"),
    "SWE-bench 1": ("command", "-q -p no:cacheprovider tests/test_calc.py"),
    "SWE-bench 2": ("script", "-watch false"),
    "SWE-bench 3": ("script", "go test"),
    "SWE-bench 5 0": ("script", rows.FIFTH["eval_script"]),
    "SWE-bench 5 1": ("script", rows.MULTILINGUAL["eval_script"]),
    "SWE-Gym 0": ("command", "-q -p no:cacheprovider tests/test_calc.py"),
    "SWE-smith 0": ("command", "tests/test_calc.py"),
    "R2E-Gym 0": ("command", "bash run_tests.sh"),
    "SWE-rebench 0": ("command", f"{rows.REBENCH['install_config']['test_cmd']} tests/test_calc.py"),
    "SWE-rebench-V2 0": ("script", "make check"),
    "SWE-bench-Live 0": ("command", "pytest -rA"),
    "SWE-bench-Live 1": ("script", "cargo test > log; ended=$?; cat log"),
    "SWE-bench-Live 2": ("script", "cat log"),
    "SWE-bench Pro 0": ("command", "tests/test_calc.py"),
    "Multi-SWE-bench 0": ("script", "bash /home/fix-run.sh"),
    "Django": ("script", "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 calc_hidden.tests"),
    "Django of SWE-bench 5": ("script", rows.FIFTH["eval_script"]),
    "SymPy": ("script", "bin/test -C --verbose sympy/core/tests/test_calc.py"),
    "SWE-rebench tells": ("command", "pytest -rA tests/test_calc.py"),
    "SWE-rebench-V2 tells": ("script", "ctest -R test_add"),
    "SWE-bench-Live tells": ("command", "python -m pytest -rA ./tests/test_calc.py::test_add"),
}
"""What runs the hidden tests, and by which of the two: a command on the patched files, or a script."""


@pytest.mark.parametrize("name", CASES)
def test_whoever_grades_runs_the_hidden_tests_by_what_the_set_says(name: str, tmp_path: Path) -> None:
    kind, said = GRADED[name]
    hidden = opened(tmp_path, CASES[name]).hidden
    assert said in (hidden.eval_script if kind == "script" else hidden.test_command)
    assert kind == ("script" if hidden.eval_script else "command")


def test_a_script_that_we_make_puts_the_hidden_tests_in_before_it_runs_them(tmp_path: Path) -> None:
    script = opened(tmp_path, DJANGO).hidden.eval_script
    assert script == eval_script(
        "/testbed",
        DJANGO["test_patch"].encode(),
        "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 calc_hidden.tests",
    )
    assert script.index("git apply") < script.index("runtests.py")


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pytest tests/test_calc.py", True),
        ("pytest ./tests/test_calc.py::test_twice", True),
        ("python -m unittest tests.test_calc", True),
        ("pytest -k test_add", True),
        ("pytest tests", False),
        ("pytest tests/test_calc.pyx -k test_adding", False),
        ("make check", False),
    ],
)
def test_a_command_names_a_hidden_test_by_its_file_its_module_or_its_name(command: str, named: bool) -> None:
    assert names_hidden(command, swebench(rows.CLASSIC).hidden) is named
