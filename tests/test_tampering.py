"""What a patch may do to the tests, the runner and the process, and what it gains by it: nothing."""

from __future__ import annotations

import pytest

from sandboxes.namespace import NamespaceProvider
from tests.measuring import CALC, CONFTEST, FIXED, PROJECT, PYTEST, TESTS, Lab

pytestmark = pytest.mark.namespace

SKIP_ALL = (
    CONFTEST + "\ndef pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if 'double' in i.name]\n"
)
PASS_ALL = (
    CONFTEST
    + """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    result = yield
    report = result.get_result()
    report.outcome, report.longrepr = "passed", None
"""
)
PASS_BY_SOURCE = """
from _pytest import reports
reports.TestReport.from_item_and_call = classmethod(
    lambda cls, item, call: cls(item.nodeid, item.location, {}, "passed", None, call.when)
)
"""
SITECUSTOMIZE = "import calc\ncalc.add = lambda a, b: a + b\n"
ALWAYS_EQUAL = "class Any(int):\n    def __eq__(self, other):\n        return True\n\n    __hash__ = None\n\n\n"
FAKE_PYTEST = "import sys\nprint('3 passed in 0.01s')\nsys.exit(0)\n"
FORGER = """
import glob, json, os

def forge():
    for path in glob.glob("/tmp/*/*"):
        try:
            seal, first = open(path).readline().split(" ", 1)
            json.loads(first)
        except (OSError, ValueError):
            continue
        tests = ["test_add", "test_double", "test_double_of_nothing"]
        facts = [{"kind": "test", "id": "tests/test_calc.py::" + test, "outcome": "passed", "seconds": 0, "message": ""}
                 for test in tests]
        facts.append({"kind": "end", "exit": 0, "collected": 3, "tests": 3})
        with open(path, "a") as report:
            report.writelines(seal + " " + json.dumps(fact) + "\\n" for fact in facts)
    os._exit(0)
"""

TRICKS = {
    "the goal test is deleted": {
        "tests/test_calc.py": TESTS[: TESTS.index("def test_add")] + TESTS[TESTS.index("def test_d") :]
    },
    "the goal test is edited to pass": {"tests/test_calc.py": TESTS.replace("== 3", "== -1")},
    "conftest deselects the goal test": {"conftest.py": SKIP_ALL},
    "conftest makes every report pass": {"conftest.py": PASS_ALL},
    "a new conftest beside the tests": {"tests/conftest.py": PASS_ALL},
    "sitecustomize in the root": {"sitecustomize.py": SITECUSTOMIZE},
    "pytest.ini deselects": {"pytest.ini": "[pytest]\naddopts = -k double\n"},
    "pytest.ini names fewer functions": {"pytest.ini": "[pytest]\npython_functions = test_double*\n"},
    "pyproject deselects": {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-k double"\n'},
    "setup.cfg deselects": {"setup.cfg": "[tool:pytest]\naddopts = -k double\n"},
    "tox.ini deselects": {"tox.ini": "[pytest]\naddopts = -k double\n"},
    "the source leaves at import": {"calc.py": "import os\nos._exit(0)\n" + CALC},
    "the source leaves in the function": {"calc.py": CALC.replace("return a - b", "import os; os._exit(0)")},
    "the source prints results and leaves": {
        "calc.py": "import os, sys\nprint('3 passed in 0.01s')\nsys.stdout.flush()\nos._exit(0)\n" + CALC
    },
    "the source patches the reports": {"calc.py": PASS_BY_SOURCE + CALC},
    "the exit code is rewritten at the end": {"calc.py": "import atexit, os\natexit.register(os._exit, 0)\n" + CALC},
    "a module takes pytest's place": {"pytest.py": FAKE_PYTEST, "pytest/__main__.py": FAKE_PYTEST},
    "a package takes pytest's place": {"pytest/__init__.py": "", "pytest/__main__.py": FAKE_PYTEST},
    "a module takes the place of one of pytest's": {"pluggy.py": FAKE_PYTEST},
    "a module takes the place of one of Python's": {"json.py": FAKE_PYTEST},
    "the result equals everything": {"calc.py": ALWAYS_EQUAL + CALC.replace("return a - b", "return Any()")},
    "the source looks who calls": {
        "calc.py": CALC.replace(
            "return a - b", "import os\n    return 3 if 'PYTEST_CURRENT_TEST' in os.environ else a - b"
        )
    },
    "the source writes the report itself": {
        "calc.py": FORGER + CALC.replace("return a - b", "forge()\n    return a - b")
    },
    "the source skips the test": {
        "calc.py": CALC.replace("return a - b", "import unittest; raise unittest.SkipTest('x')")
    },
}

BLUNT = {
    "the test file is deleted": {"tests/test_calc.py": None},
    "the goal test is marked to be skipped": {
        "tests/test_calc.py": "import pytest\npytest.skip(allow_module_level=True)\n"
    },
    "the source prints results": {"calc.py": CALC.replace("return a - b", "print('3 passed in 0.01s'); return a - b")},
    "the source exits at import": {"calc.py": "import sys\nsys.exit(0)\n" + CALC},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    provider = NamespaceProvider(tmp_path_factory.mktemp("store"))
    lab = Lab(provider, tmp_path_factory.mktemp("repo"), PROJECT)
    yield lab
    provider.close()


@pytest.fixture(scope="module")
def measurer(lab):
    return lab.measurer()


def test_an_honest_repair_solves(lab, measurer):
    evaluation, _base = lab.judge(measurer, lab.state({"calc.py": FIXED}))
    assert evaluation.solved
    assert evaluation.value == 1.0


def test_an_honest_repair_with_a_new_test_solves(lab, measurer):
    more = {"calc.py": FIXED, "tests/test_more.py": "def test_more():\n    assert False\n"}
    evaluation, _base = lab.judge(
        measurer, lab.state({**more, "tests/test_calc.py": TESTS + "\n\ndef test_last():\n    pass\n"})
    )
    assert evaluation.solved


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_that_makes_pytest_succeed_gains_nothing(lab, measurer, trick):
    state = lab.state(TRICKS[trick])
    with lab.provider.at(state) as box:
        assert box.exec(["/bin/sh", "-c", PYTEST], timeout_s=100).exit_code == 0
    evaluation, base = lab.judge(measurer, state)
    assert not evaluation.solved
    assert evaluation.value <= base.value


@pytest.mark.parametrize("trick", BLUNT)
def test_a_trick_that_makes_no_test_run_gains_nothing(lab, measurer, trick):
    evaluation, base = lab.judge(measurer, lab.state(BLUNT[trick]))
    assert not evaluation.solved
    assert evaluation.value <= base.value


@pytest.mark.parametrize(
    "trick",
    [
        "conftest makes every report pass",
        "the source patches the reports",
        "the test file is deleted",
        "the goal test is marked to be skipped",
    ],
)
def test_a_repair_with_a_trick_is_refused(lab, measurer, trick):
    changes = {**TRICKS, **BLUNT}[trick]
    repaired = {"calc.py": FIXED, **{name: text and text.replace(CALC, FIXED) for name, text in changes.items()}}
    evaluation, base = lab.judge(measurer, lab.state(repaired))
    assert not evaluation.solved
    assert evaluation.value <= base.value
    assert "Refused" in evaluation.notes


def test_a_repair_that_rewrites_an_assertion_is_judged_by_the_test_as_it_was(lab, measurer):
    rewritten = TRICKS["the goal test is edited to pass"]
    evaluation, base = lab.judge(measurer, lab.state({"calc.py": FIXED, **rewritten}))
    assert evaluation.solved
    evaluation, base = lab.judge(measurer, lab.state(rewritten))
    assert not evaluation.solved
    assert evaluation.value <= base.value


def test_a_source_that_is_a_link_is_judged_by_all_that_it_leads_to(lab, measurer):
    with lab.provider.at(lab.base) as box:
        box.write("notes.txt", f"{FIXED}\n\ndef look():\n    import inspect\n\n    return inspect.stack()\n".encode())
        box.remove("calc.py")
        assert box.exec(["ln", "-s", "notes.txt", "calc.py"], timeout_s=100).exit_code == 0
        linked = box.snapshot()
    evaluation, base = lab.judge(measurer, linked)
    assert (evaluation.solved, evaluation.value <= base.value) == (False, True)
    assert "calc.py:15: inspect.stack" in evaluation.notes
