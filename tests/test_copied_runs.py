"""Runs that are copied from a template say what runs in new processes say, or are not made."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.measure import Outcome, SuiteReport
from agent.measure.baseline import Baseline
from agent.measure.measurer import find_baseline
from agent.measure.suite import copy_run, run_suite
from agent.measure.warm.runner import Start, find_warm
from agent.measure.warm.trust import LOSSES, Trust
from sandboxes import TemplateLost
from tests.measuring import PYTEST, Lab
from tests.tiers import examples, slow_but

pytestmark = pytest.mark.namespace

MODULES = ("first", "second", "third")
TESTS = """import first, second, third

def test_first(): assert first.VALUE == 1
def test_second(): assert second.VALUE == 1
def test_third(): assert third.VALUE == 1
def test_sum(): assert first.total() == 3
def test_lazy():
    import lazy
    assert lazy.VALUE == 1
"""
PROJECT = {
    "conftest.py": "import first\n",
    "first.py": "import second\nVALUE = 1\ndef total(): return VALUE + second.total()\n",
    "second.py": "VALUE = 1\nimport third\ndef total(): return VALUE + third.VALUE\n",
    "third.py": "VALUE = 1\nTEXT = open(__file__.replace('third', 'data').replace('.py', '.txt')).read()\n",
    "lazy.py": "VALUE = 1\n",
    "data.txt": "text",
    "tests/test_values.py": TESTS,
}


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Lab(provider, tmp_path_factory.mktemp("repo"), PROJECT)


@pytest.fixture(scope="module")
def measurer(lab):
    return lab.measurer()


def project(provider, folder, files):
    """A lab and its measurer."""
    lab = Lab(provider, folder, {**PROJECT, **files})
    return lab, lab.measurer()


def both(lab, measurer, files, tests=()):
    """The same state by a new process and by a copy."""
    state = lab.state(files)
    new = run_suite(lab.provider, lab.task, state, lab.base, tests, measurer.rules)
    return new, copy_run(lab.provider, state, lab.base, tests, measurer.rules, session=True)


def agree(new, copied):
    return (new.outcomes, new.valid, new.exit_code) == (copied.outcomes, copied.valid, copied.exit_code)


def test_the_base_state_ends_the_same_way_in_a_copied_run(lab, measurer):
    assert lab.baseline.start == "new"
    assert lab.baseline.unsafe == ()
    new, copied = both(lab, measurer, {})
    assert agree(new, copied)
    assert copied.start == "session"


@pytest.mark.parametrize("name", slow_but(["second", "lazy"], [*MODULES, "lazy"]))
def test_an_edit_is_seen_wherever_the_session_stopped(lab, measurer, name):
    text = PROJECT[f"{name}.py"].replace("VALUE = 1", "VALUE = 2")
    new, copied = both(lab, measurer, {f"{name}.py": text})
    assert agree(new, copied)
    assert copied.start == "session"
    assert copied.outcome(f"tests/test_values.py::test_{name}") is Outcome.FAILED


@settings(max_examples=examples(10, 3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    edits=st.dictionaries(
        st.sampled_from([*MODULES, "lazy"]),
        st.sampled_from(["VALUE = 2", "VALUE = 1 +", "raise OSError", "import os; os._exit(0)"]),
    ),
    tests=st.sampled_from([(), ("tests/test_values.py::test_sum",)]),
)
def test_any_edits_end_as_they_do_in_a_new_process(lab, measurer, edits, tests):
    files = {f"{name}.py": PROJECT[f"{name}.py"].replace("VALUE = 1", line) for name, line in edits.items()}
    new, copied = both(lab, measurer, files, tests)
    assert agree(new, copied)


@pytest.mark.parametrize(
    "files",
    [
        {"data.txt": "other"},
        {"new.py": "VALUE = 1\n"},
        {"lazy.py": None},
        {"second.py": None, "second/__init__.py": PROJECT["second.py"]},
    ],
    ids=["data", "added", "removed", "package"],
)
def test_other_changes_begin_with_the_imported_packages_only(lab, measurer, files):
    new, copied = both(lab, measurer, files)
    assert agree(new, copied)
    assert copied.start == "packages"


LEAVES = {
    "a file": "open('/tmp/left', 'w').write('x')\n",
    "directories": "import os\nos.makedirs('/tmp/made/here')\n",
    "a process": "import subprocess\nsubprocess.run(['true'])\n",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n",
}


@pytest.mark.parametrize("left", slow_but(["a file"], LEAVES))
def test_a_session_that_leaves_or_starts_something_is_not_copied(provider, tmp_path, left):
    lab, measurer = project(provider, tmp_path, {"conftest.py": LEAVES[left]})
    new, copied = both(lab, measurer, {"third.py": "VALUE = 2\n"})
    assert agree(new, copied)
    assert copied.start == "packages"


@pytest.mark.slow
def test_a_session_that_ignores_the_end_of_its_children_is_copied_again_and_again(provider, tmp_path):
    ignoring = "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    test = "import signal\n\ndef test_ignored(): assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN\n"
    lab, measurer = project(provider, tmp_path, {"conftest.py": ignoring, "tests/test_ignored.py": test})
    for value in (2, 3):
        new, copied = both(lab, measurer, {"third.py": f"VALUE = {value}\n"})
        assert agree(new, copied)
        assert copied.start == "session"
        assert copied.outcome("tests/test_ignored.py::test_ignored") is Outcome.PASSED


def test_a_source_that_is_read_as_text_while_tests_are_collected_is_read_anew(provider, tmp_path):
    reader = "import pathlib\nTEXT = pathlib.Path('lazy.py').read_text()\n"
    lab, measurer = project(provider, tmp_path, {"conftest.py": reader, "tests/test_text.py": (
        "import conftest\n\ndef test_text(): assert conftest.TEXT == 'VALUE = 1\\n'\n"
    )})  # fmt: skip
    new, copied = both(lab, measurer, {"lazy.py": "VALUE = 2\n"})
    assert agree(new, copied)
    assert copied.outcome("tests/test_text.py::test_text") is Outcome.FAILED


def test_an_edit_that_puts_size_and_time_back_is_seen(lab, measurer):
    edit = "touch -r second.py /tmp/was; sed -i 's/VALUE = 1/VALUE = 2/' second.py; touch -r /tmp/was second.py"
    with lab.provider.at(lab.base) as box:
        assert box.exec(["sh", "-c", edit], timeout_s=100).exit_code == 0
        state = box.snapshot()
    copied = copy_run(lab.provider, state, lab.base, (), measurer.rules, session=True)
    assert copied.start == "session"
    assert copied.outcome("tests/test_values.py::test_second") is Outcome.FAILED


@pytest.mark.slow
def test_a_source_that_became_a_link_to_its_twin_is_seen(provider, tmp_path):
    """Files that were unpacked together are as old as each other."""
    unpack = "echo VALUE = 1 > lazy.py; echo VALUE = 2 > twin.py; touch -d @1000000000 lazy.py twin.py"
    lab = Lab(provider, tmp_path, {**PROJECT, "conftest.py": "import lazy\n"}, setup=(unpack,))
    measurer = lab.measurer()
    with lab.provider.at(lab.base) as box:
        assert box.exec(["ln", "-sf", "twin.py", "lazy.py"], timeout_s=100).exit_code == 0
        state = box.snapshot()
    copied = copy_run(lab.provider, state, lab.base, (), measurer.rules, session=True)
    assert copied.outcome("tests/test_values.py::test_lazy") is Outcome.FAILED


@pytest.mark.slow
def test_a_module_that_a_test_writes_and_imports_again_is_read_again(provider, tmp_path):
    """Both may be of one tick of the file system's clock."""
    again = """
import importlib, pathlib, sys

def test_again():
    for value in range(1000, 1100):
        pathlib.Path("made.py").write_text(f"VALUE = {value}\\n")
        importlib.invalidate_caches()
        sys.modules.pop("made", None)
        assert importlib.import_module("made").VALUE == value
"""
    lab, measurer = project(provider, tmp_path, {"tests/test_again.py": again})
    new, copied = both(lab, measurer, {"third.py": "VALUE = 3\n"})
    assert agree(new, copied)
    assert copied.start == "session"
    assert copied.outcome("tests/test_again.py::test_again") is Outcome.PASSED


@pytest.mark.slow
def test_a_module_that_is_loaded_by_its_path_is_seen_when_it_was_edited(provider, tmp_path):
    by_path = """
import importlib.util, pathlib
spec = importlib.util.spec_from_file_location("odd", pathlib.Path(__file__).with_name("odd.py"))
odd = importlib.util.module_from_spec(spec)
spec.loader.exec_module(odd)
"""
    odd_test = "import conftest\n\ndef test_odd(): assert conftest.odd.VALUE == 1\n"
    files = {"conftest.py": by_path, "odd.py": "VALUE = 1\n", "tests/test_odd.py": odd_test}
    lab, measurer = project(provider, tmp_path, files)
    assert both(lab, measurer, {"third.py": "VALUE = 3\n"})[1].start == "session"
    new, copied = both(lab, measurer, {"odd.py": "VALUE = 2\n"})
    assert agree(new, copied)
    assert copied.start == "session"
    assert copied.outcome("tests/test_odd.py::test_odd") is Outcome.FAILED


@pytest.mark.slow
def test_tests_that_end_differently_in_a_copy_are_never_copied(provider, tmp_path):
    odd = "import os\n\ndef test_has_a_parent(): assert os.getppid()\n\ndef test_ok(): pass\n"
    lab, measurer = project(provider, tmp_path, {"tests/test_odd.py": odd})
    test, ok = "tests/test_odd.py::test_has_a_parent", "tests/test_odd.py::test_ok"
    assert lab.baseline.unsafe == (test,)
    assert lab.baseline.flaky == ()
    state = lab.state({"lazy.py": "VALUE = 2\n"})
    assert measurer.measure(state).start == "new"
    assert measurer.measure(state, (test,)).start == "new"
    assert measurer.measure(state, ("tests/test_odd.py",)).start == "new"
    assert measurer.measure(state, (ok,)).start == "packages"


def test_a_session_is_begun_for_tests_that_are_run_again(lab, measurer):
    tests = ("tests/test_values.py::test_lazy",)
    starts = [measurer.measure(lab.state({"lazy.py": f"VALUE = {n}\n"}), tests).start for n in (5, 6, 7)]
    assert starts == ["packages", "session", "session"]


def test_a_patch_is_verified_in_a_new_process(lab, measurer):
    assert measurer.measure_afresh(lab.state({"lazy.py": "VALUE = 8\n"})).start == "new"


@pytest.mark.slow
def test_where_the_project_is_imported_before_any_test_nothing_is_copied(provider, tmp_path):
    lab, measurer = project(provider, tmp_path, {"sitecustomize.py": ""})
    assert lab.baseline.unsafe is None
    assert measurer.measure(lab.state({"lazy.py": "VALUE = 2\n"})).start == "new"
    with pytest.raises(TemplateLost, match="sitecustomize of the workspace"):
        both(lab, measurer, {})


def test_what_one_copy_prints_and_does_is_not_seen_by_the_next(lab, measurer):
    spoil = "VALUE = 1\nimport os, sys\nprint('SPOILT')\nos.environ['SPOILT'] = '1'\nopen('/tmp/spoilt', 'w')\n"
    both(lab, measurer, {"third.py": spoil + "raise OSError('first')\n"})
    look = "VALUE = 1\nimport os\nassert not os.path.exists('/tmp/spoilt') and 'SPOILT' not in os.environ\n"
    _, copied = both(lab, measurer, {"third.py": look + "raise OSError('second')\n"})
    assert copied.start == "session"
    assert "second" in copied.output
    assert "SPOILT" not in copied.output


def test_copies_draw_different_random_numbers(lab, measurer):
    draw = "import random\nVALUE = random.random()\n"
    runs = [both(lab, measurer, {"third.py": draw + f"N = {n}\n"})[1] for n in range(2)]
    messages = [run.messages["tests/test_values.py::test_third"] for run in runs]
    assert messages[0] != messages[1]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("python -m pytest -q tests", ("-m", "pytest", "-q", "tests")),
        ("A=1 B='x y' python3 -m pytest", ("-m", "pytest")),
        ("pytest -q && true", None),
        ("cd src; python -m pytest", None),
        ("python -m pytest $ARGS", None),
        ("python -O -m pytest", None),
        ("tox -e py", None),
        ("make test", None),
        ("", None),
    ],
)
def test_only_plain_runs_of_pytest_are_copied(lab, command, arguments):
    with lab.provider.at(lab.base) as box:
        warm = find_warm(box, command)
    assert (warm.argv if warm else None) == arguments


def test_a_script_of_pytest_is_run_as_the_script_is(lab, measurer):
    command = PYTEST.split()[0].replace("/python", "/pytest") + " -q -p no:cacheprovider"
    with lab.provider.at(lab.base) as box:
        warm = find_warm(box, command)
    assert warm is not None
    assert warm.argv[0].endswith("/pytest")


@pytest.mark.slow
def test_after_some_lost_templates_no_run_is_copied(lab, measurer):
    trust = Trust(Baseline(lab.baseline, pytest.fail), lambda tests: pytest.fail("not asked"))
    for _ in range(LOSSES):
        assert trust.start(()) is Start.SESSION
        trust.lost(TemplateLost("gone"))
    assert trust.start(()) is Start.NEW


def test_tests_of_a_slow_suite_are_copied_once_the_base_state_agreed(lab, measurer):
    slow = find_baseline(lab.provider, lab.task, lab.base, runs=1)
    compared = []

    def compare(tests):
        compared.append(tests)
        return measurer.measure_afresh(lab.base, tests, start=Start.SESSION)

    trust = Trust(Baseline(slow, pytest.fail), compare)
    tests = ("tests/test_values.py::test_sum",)
    assert [trust.start(()), trust.start(tests), trust.start(tests), trust.start(tests)] == [
        Start.NEW,
        Start.NEW,
        Start.SESSION,
        Start.SESSION,
    ]
    assert compared == [tests]


@pytest.mark.parametrize(("run_s", "start"), [(2.0, Start.NEW), (2.5, Start.SESSION)])
def test_tests_that_take_longer_than_some_starts_are_not_compared_with_a_copy(lab, run_s, start):
    tests = ("tests/test_values.py::test_sum",)
    report = SuiteReport(dict.fromkeys(tests, Outcome.PASSED), durations={tests[0]: 2.0}, complete=False)
    trust = Trust(Baseline(report, pytest.fail), lambda tests: report)
    assert trust.start(tests) is Start.NEW
    trust.record_new_run(tests, replace(report, duration_s=run_s))
    assert trust.start(tests) is start


@pytest.mark.slow
def test_no_copied_run_refuses_a_patch_and_tests_that_differ_are_remembered(provider, tmp_path):
    """A test that fails in a copy only, and only with the patch: the base state does not give it away."""
    odd = "import lazy, os\n\ndef test_odd(): assert lazy.VALUE == 1 or os.getppid()\n\ndef test_ok(): pass\n"
    lab, measurer = project(provider, tmp_path, {"tests/test_odd.py": odd})
    assert lab.baseline.unsafe == ()
    patched = lab.state({"lazy.py": "VALUE = 2\n"})
    odd_test = "tests/test_odd.py::test_odd"
    assert measurer.measure_afresh(patched, start=Start.SESSION).outcome(odd_test) is Outcome.FAILED
    report, _ = measurer.report_on(patched, cut=True)
    assert report.start == "new"
    assert report.passed(odd_test)
    assert measurer.measure(lab.state({"lazy.py": "VALUE = 3\n"}), (odd_test,)).start == "new"
    assert measurer.measure(lab.state({"lazy.py": "VALUE = 3\n"}), ("tests/test_odd.py::test_ok",)).start == "packages"


def test_copies_that_ended_are_no_longer_processes(lab, measurer):
    for number in range(12):
        state = lab.state({"third.py": PROJECT["third.py"] + f"# {number}\n"})
        measurer.measure(state, ("tests/test_values.py::test_sum",))
    assert len(zombies()) < 6


def zombies():
    """Processes below this one that ended and were not waited for."""
    facts = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            facts[status.parent.name] = (state, parent)
    ours = {str(os.getpid())}
    while more := {process for process, (_, parent) in facts.items() if parent in ours} - ours:
        ours |= more
    return [process for process in ours if facts[process][0] == "Z"]


@pytest.mark.slow
@pytest.mark.parametrize("others", [{}, {"new.txt": "x"}], ids=["edited", "among other changes"])
@pytest.mark.parametrize("place", ["lib/site-packages", "site-packages-of-ours"])
def test_a_package_in_the_workspace_is_that_of_the_base_where_it_is_installed_and_else_seen_when_edited(
    provider, tmp_path, place, others
):
    conftest = f"import sys\nsys.path.insert(0, '{place}')\nimport first, dep\n"
    test = "import dep\n\ndef test_dep(): assert dep.VALUE == 1\n"
    lab, measurer = project(
        provider, tmp_path, {"conftest.py": conftest, f"{place}/dep.py": "VALUE = 1\n", "tests/test_dep.py": test}
    )
    both(lab, measurer, {"first.py": PROJECT["first.py"] + "#"})
    new, copied = both(lab, measurer, {f"{place}/dep.py": "VALUE = 2\n", **others})
    assert agree(new, copied)
    wanted = Outcome.PASSED if place == "lib/site-packages" else Outcome.FAILED
    assert copied.outcome("tests/test_dep.py::test_dep") is wanted


@pytest.mark.slow
def test_a_workspace_may_itself_be_among_installed_packages(provider, tmp_path):
    lab = Lab(provider, tmp_path, PROJECT, mount="/opt/site-packages/project")
    measurer = lab.measurer()
    new, copied = both(lab, measurer, {"second.py": PROJECT["second.py"].replace("VALUE = 1", "VALUE = 2")})
    assert agree(new, copied)
    assert copied.outcome("tests/test_values.py::test_second") is Outcome.FAILED
