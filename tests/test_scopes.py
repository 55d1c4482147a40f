"""Suites that take too long: a state is measured by the tests that its change can reach, and the answer says so."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget
from agent.config import given as settings_of
from agent.engine.components import Components
from agent.errors import MeasureError
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.measure.baseline import joined, unknown_in
from agent.measure.measurer import Measurer, find_baseline
from agent.measure.regressions import regressions
from agent.measure.timing import Timing
from agent.policy.chat.opening import introduction
from agent.run.events import Extended, Spent
from agent.run.run import Run
from agent.run.tree.node import Node
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from agent.task import Task
from sandboxes import Workspace
from tests.measuring import CONFTEST, PYTEST, Lab
from tests.policies import edits
from tests.projects import FIX, SOURCE, TESTS, commit, task

pytestmark = pytest.mark.namespace

SLEEPS = "import time\n\n\ndef test_sleep():\n    time.sleep(900)\n\n\ndef test_after():\n    pass\n"
FILES = {
    "conftest.py": CONFTEST,
    "shapes.py": "def area(a, b):\n    return a + b\n",
    "colours.py": "import mixing\n\n\ndef mix(a, b):\n    return mixing.add(a, b)\n",
    "mixing.py": "def add(a, b):\n    return a + b\n",
    "tests/test_a_colours.py": "import colours\n\n\ndef test_mix():\n    assert colours.mix(1, 2) == 3\n",
    "tests/test_b_sleep.py": SLEEPS,
    "tests/test_mixing.py": "from mixing import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "tests/test_shapes.py": "from shapes import area\n\n\ndef test_area():\n    assert area(2, 3) == 6\n\n\n"
    "def test_two():\n    assert area(2, 2) == 4\n",
}
GOAL = "tests/test_shapes.py::test_area"
SHORT = Timing(every_s=0.0, whole_s=0.0, scope_s=20.0, final_s=0.0)
"""No time for a run of all tests, neither at the beginning nor in the end."""


class Long(Lab):
    """A repository with a test that sleeps for a quarter of an hour, and what measures its states."""

    def __init__(self, provider, folder, goals=(), files=FILES, timing=SHORT):
        super().__init__(provider, folder, files, goals=goals)
        self.task = replace(self.task, goal_failing=False)
        self.timing, self.learned = timing, []
        self.report = find_baseline(provider, self.task, self.base, timing=timing)

    def scoring(self):
        scorer = StagedScorer(
            self.provider, self.task, self.base, self.report, PassingTests(), timing=self.timing,
            learned=self.learned.append,
        )  # fmt: skip
        self.path = (Node(0, (), (), self.base, self.report, scorer.root),)
        return scorer


@pytest.fixture(scope="module")
def long(provider, tmp_path_factory):
    return Long(provider, tmp_path_factory.mktemp("long"))


@pytest.fixture
def scorer(long):
    long.learned = []
    return long.scoring()


@pytest.mark.slow
def test_a_test_that_sleeps_leaves_the_others_their_time(long):
    report = find_baseline(long.provider, long.task, long.base, timing=replace(SHORT, whole_s=6.0))
    assert report.valid
    assert report.late == {"tests/test_b_sleep.py": 1}
    assert len(report.outcomes) == 5


def test_a_first_run_that_has_no_time_lists_the_tests(long):
    assert long.report.valid
    assert long.report.late == {file: text.count("def test_") for file, text in FILES.items() if "tests/" in file}


def test_a_state_is_measured_by_what_reaches_its_change_and_the_base_is_asked_then(long, scorer):
    report, evaluation, _ = scorer.score(long.state({"mixing.py": "def add(a, b):\n    return a - b\n"}), long.path)
    assert set(report.failures) == {"tests/test_a_colours.py::test_mix", "tests/test_mixing.py::test_add"}
    assert report.scope == "2 of about 6 tests: those that reach `mixing.py`"
    assert [set(each.outcomes) for each in long.learned] == [set(report.outcomes)]
    assert evaluation.parts["harm"] > 0


def test_what_git_writes_for_itself_is_no_change(long, scorer):
    noise = {".git/index": "x", ".git/objects/2b/63": "y", "vendor/.git/HEAD": "z"}
    report, _, _ = scorer.score(long.state({"mixing.py": "def add(a, b):\n    return b + a\n", **noise}), long.path)
    assert report.scope == "2 of about 6 tests: those that reach `mixing.py`"


@pytest.mark.parametrize("path", ["CHANGES.rst", "docs/usage.md", "doc/source/index.rst"])
def test_a_page_of_documentation_is_no_source(long, scorer, path):
    report, _, _ = scorer.score(
        long.state({"mixing.py": "def add(a, b):\n    return b + a\n", path: "New.\n"}), long.path
    )
    assert report.scope == "2 of about 6 tests: those that reach `mixing.py`"


def test_a_page_is_measured_where_pages_are_tests(provider, tmp_path):
    page = "    >>> 1 + 1\n    2\n"
    files = {**FILES, "docs/usage.txt": page, "pytest.ini": "[pytest]\naddopts = --doctest-glob=*.txt\n"}
    long = Long(provider, tmp_path, files=files)
    report, _, _ = long.scoring().score(long.state({"docs/usage.txt": page.replace("2", "3")}), long.path)
    assert "docs/usage.txt" in report.scope


def test_the_base_is_asked_once_for_each_file_of_tests(long, scorer):
    for text in ("def add(a, b):\n    return b + a\n", "def add(a, b):\n    return sum([a, b])\n"):
        report, _, _ = scorer.score(long.state({"mixing.py": text}), long.path)
        assert not report.failures
    assert len(long.learned) == 1


@pytest.mark.slow
def test_goal_tests_that_the_first_run_did_not_reach_are_found_in_the_base(provider, tmp_path):
    long = Long(provider, tmp_path, (GOAL,))
    scorer = long.scoring()
    assert scorer.task.goal_tests == (GOAL,)
    fixed = long.state({"shapes.py": "def area(a, b):\n    return a * b\n"})
    report, evaluation, _ = scorer.score(fixed, long.path)
    assert evaluation.solved
    assert report.passed(GOAL)
    assessment = scorer.assess(fixed, long.path, report)
    assert assessment.evaluation.solved
    assert assessment.broken == ()
    assert assessment.report.scope == (
        "2 of about 6 tests: those that reach `shapes.py`; the others were not run: "
        "how long all tests take is unknown, and there are only 0 s left for it"
    )


@pytest.mark.slow
def test_the_rest_is_run_before_the_answer_where_there_is_time_for_it(provider, tmp_path):
    hidden = {**FILES, "tests/test_b_sleep.py": "import time\n\n\ndef test_sleep():\n    time.sleep(3)\n",
              "tests/test_t.py": "def test_text():\n    assert 'a + b' in open('shap' + 'es.py').read()\n"}  # fmt: skip
    long = Long(provider, tmp_path, files=hidden, timing=replace(SHORT, whole_s=4.0, final_s=60.0))
    scorer = long.scoring()
    changed = long.state({"shapes.py": "def area(a, b):\n    return a * b\n"})
    report, evaluation, _ = scorer.score(changed, long.path)
    assert evaluation.parts["harm"] == 0.0
    assessment = scorer.assess(changed, long.path, report)
    assert assessment.report.complete
    assert assessment.broken == ("tests/test_t.py::test_text",)


@pytest.mark.slow
def test_what_had_failed_in_the_base_is_not_broken_by_a_run_of_all(provider, tmp_path):
    red = {**FILES, "tests/test_b_sleep.py": SLEEPS.replace("900", "3"),
           "tests/test_red.py": "def test_red():\n    assert False\n"}  # fmt: skip
    long = Long(provider, tmp_path, files=red, timing=replace(SHORT, whole_s=4.0, final_s=60.0))
    scorer = long.scoring()
    changed = long.state({"mixing.py": "def add(a, b):\n    return b + a\n"})
    assessment = scorer.assess(changed, long.path, scorer.score(changed, long.path)[0])
    assert "tests/test_red.py::test_red" in assessment.report.failures
    assert assessment.broken == ()


def test_a_change_that_no_test_reaches_breaks_none_and_says_so(long, scorer):
    report, evaluation, _ = scorer.score(long.state({"tests/test_new.py": "def test_new():\n    pass\n"}), long.path)
    assert report.scope == "0 of about 6 tests: no source file has changed"
    assert evaluation.value == scorer.root.value


@pytest.mark.slow
def test_tests_are_run_by_several_processes_with_the_same_result(provider, tmp_path):
    files = {**FILES, "tests/test_b_sleep.py": "def test_sleep():\n    pass\n"}
    lab = Lab(provider, tmp_path, files)
    alone = find_baseline(provider, lab.task, lab.base, runs=1)
    beside = find_baseline(provider, lab.task, lab.base, runs=1, timing=Timing(jobs=3))
    assert dict(beside.outcomes) == dict(alone.outcomes)
    assert (beside.valid, beside.complete, beside.collected) == (True, True, alone.collected)
    assert len(beside.durations) == len(alone.durations)
    measurer = Measurer(provider, lab.task, lab.base, beside, timing=Timing(jobs=3))
    broken = lab.state({"shapes.py": "def area(a, b):\n    raise KeyError\n"})
    assert set(measurer.measure(broken).failures) == {GOAL, GOAL.replace("area", "two")}
    assert set(measurer.measure(broken, (GOAL,)).outcomes) == {GOAL}


@pytest.mark.slow
def test_a_run_of_a_scope_ends_when_its_time_is_up_and_says_how_many_tests_it_rests_on(provider, tmp_path):
    sleeps = (
        "import slow, time\n\n\ndef test_first():\n    assert slow.ON\n\n\ndef test_sleep():\n    time.sleep(900)\n"
    )
    files = {**FILES, "slow.py": "ON = True\n", "tests/test_b_sleep.py": f"{sleeps}\n\ndef test_last():\n    pass\n"}
    long = Long(provider, tmp_path, files=files, timing=replace(SHORT, scope_s=4.0))
    began = time.monotonic()
    report, evaluation, _ = long.scoring().score(long.state({"slow.py": "ON = False\n"}), long.path)
    assert time.monotonic() - began < 100  # once in the state and once in the base state, of 900 s each
    assert report.valid
    assert report.failures == ("tests/test_b_sleep.py::test_first",)
    assert report.late == {"tests/test_b_sleep.py": 2}
    assert report.scope == "1 of about 7 tests: those that reach `slow.py`"
    assert evaluation.parts["harm"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "-p xdist -n 3"], ids=["alone", "with pytest-xdist"])
def test_the_setting_of_jobs_divides_the_tests_of_a_state_among_processes(provider, tmp_path, options):
    says = "import os, shapes\n\n\ndef test_{n}():\n    assert not shapes.area(1, 1), f'process {{os.getpid()}}'\n"
    files = {"conftest.py": CONFTEST, "shapes.py": "def area(a, b):\n    return 0\n"}
    files |= {f"tests/test_{n}.py": says.format(n=n) for n in range(6)}
    lab = Lab(provider, tmp_path, files, f"{PYTEST} {options}")
    broken = lab.state({"shapes.py": "def area(a, b):\n    return a * b\n"})
    said = {}
    for jobs in (1, 2):
        timing = settings_of([f"measure.jobs={jobs}", "measure.every_s=0"], {}).measure.timing
        baseline = find_baseline(provider, lab.task, lab.base, runs=1, timing=timing)
        report = Measurer(provider, lab.task, lab.base, baseline, timing=timing).measure(broken)
        assert (report.valid, len(report.failures), len(report.outcomes)) == (True, 6, 6)
        said[jobs] = {re.search(r"process (\d+)", message)[1] for message in report.messages.values()}
    assert [len(said[jobs]) for jobs in said] == [1, 2]


# ---- whole runs

LONG = {"means.py": SOURCE, "test_means.py": TESTS.replace("mean([]) == 0.0", "mean([4]) == 4"),
        "test_a_sleep.py": SLEEPS}  # fmt: skip


@pytest.fixture
def solved(provider, tmp_path):
    """What a run comes to whose suite sleeps, its directory, and what it recorded."""
    events = []
    with Run.open(tmp_path / "run") as run:
        parts = Components(provider, edits(FIX), BestFirst(), PassingTests(), Budget(max_nodes=2), timing=SHORT)
        wanted = task(commit(tmp_path / "repo", LONG), test_command="python -m pytest -q")
        result = solve(wanted, parts, run, on_event=events.append)
    return result, tmp_path / "run", events


def test_a_run_records_what_it_learns_of_the_base_and_reads_it_again(solved):
    _, directory, events = solved
    learned = [event for event in events if isinstance(event, Extended)]
    assert [set(event.report.asked) for event in learned] == [{"test_means.py"}]
    assert [event.what for event in events if isinstance(event, Spent)].count("baseline") == 2
    with Run.read(directory) as run:
        assert run.tree.root.report.passed("test_means.py::test_mean_of_some")
        assert not run.tree.root.report.at_first.outcomes


def test_what_a_model_is_told_first_does_not_change_with_what_is_learned(solved):
    _, directory, events = solved
    with Run.read(directory) as run:
        root, wanted = run.tree.root, task(directory)
    first = next(event.node.report for event in events if event.kind == "added")
    assert introduction(wanted, root.report, "/w") == introduction(wanted, first, "/w")
    assert "All tests take more than 1 s: `run_tests` without ids runs those that your change can reach." in str(
        introduction(wanted, first, "/w")
    )


# ---- a suite that cannot be run


@pytest.mark.slow
def test_a_command_that_does_not_end_leaves_a_model_its_turns(provider, tmp_path):
    lab = Lab(provider, tmp_path, FILES, "sleep 1000", framework="exit-code")
    report = find_baseline(provider, lab.task, lab.base, untested=True, timing=Timing(whole_s=1.0, final_s=1.0))
    assert report.valid
    assert not report.outcomes
    assert report.problem.startswith("'sleep 1000' was ended after ")
    with pytest.raises(MeasureError, match="took longer than"):
        find_baseline(provider, lab.task, lab.base, timing=Timing(whole_s=1.0, final_s=1.0))


# ---- what reports say together

TESTS_OF = st.dictionaries(
    st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), st.sampled_from(["t", "u"])).map("::".join),
    st.sampled_from([Outcome.PASSED, Outcome.FAILED]),
)


@given(TESTS_OF, TESTS_OF)
def test_what_is_known_of_a_test_does_not_change(first, more):
    asked = tuple({test.split("::")[0] for test in more})
    both = joined(SuiteReport(first, complete=False), SuiteReport(more, complete=False, asked=asked))
    assert both.outcomes.items() >= first.items()
    assert both.at_first.outcomes == first
    assert unknown_in(both, [*first, *more, *asked]) == []


def test_what_a_model_is_told_first_stays_the_same_when_more_is_learned_of_a_base_state_whose_tests_all_ran():
    whole = SuiteReport({"a.py::t": Outcome.PASSED}, duration_s=21.0)
    doubted = joined(whole, SuiteReport({}, flaky=("a.py::t",)))
    assert doubted.first is None
    told = [introduction(Task("t", "It is wrong.", Workspace(), "pytest"), each, "/w") for each in (whole, doubted)]
    assert told[0] == told[1]


@given(TESTS_OF, TESTS_OF, st.booleans())
def test_a_test_that_was_not_run_is_not_broken(base, after, cut):
    baseline = SuiteReport(base)
    asked = tuple({test.split("::")[0] for test in after})
    report = SuiteReport(after, complete=False, asked=asked, left_out=int(cut))
    broken = regressions(baseline, report)
    assert {test.split("::")[0] for test in broken} <= set(asked)
    assert not cut or set(broken) <= set(after)
