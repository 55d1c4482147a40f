"""Goals, then all tests or those in the scope of a state: what is run, and that it never changes the verdict."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.measure import SuiteReport
from agent.measure.measurer import find_baseline
from agent.measure.probing.tracing import trace
from agent.measure.timing import Timing
from agent.run.run import Run
from agent.run.tree.node import Node
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from tests.measuring import CONFTEST, Lab
from tests.policies import edits
from tests.projects import FIX, means, task
from tests.tiers import examples

pytestmark = pytest.mark.namespace

SHAPES = """LIMIT = 10


def area(a, b):
    return a + b


def edge(a):
    return (
        4
        * a
    )


def fits(a):
    if a > LIMIT:
        return False
    return True


"""
COLOURS = "def mix(a, b):\n    return a + b\n"
FILES = {
    "conftest.py": CONFTEST,
    "shapes.py": SHAPES,
    "colours.py": COLOURS,
    "data.txt": "1",
    "tests/test_area.py": "from shapes import area\n\n\ndef test_two():\n    assert area(2, 2) == 4\n\n\n"
    "def test_three():\n    assert area(3, 3) == 9\n",
    "tests/test_colours.py": "from colours import mix\n\n\ndef test_mix():\n    assert mix(1, 2) == 3\n",
    "tests/test_data.py": "def test_data():\n    assert open('data.txt').read() == '1'\n",
    "tests/test_edge.py": "from shapes import edge\n\n\n"
    + "".join(f"def test_{n}():\n    assert edge({n}) == {4 * n}\n\n\n" for n in range(4)),
    "tests/test_slow.py": "import time\n\n\ndef test_slow():\n    time.sleep(0.2)\n",
    "tests/test_fits.py": "from shapes import fits\n\n\ndef test_small():\n    assert fits(1)\n\n\n"
    "def test_large():\n    assert not fits(11)\n",
}
GOAL = "tests/test_area.py::test_three"
CHANGES = {
    "area": ("    return a + b\n\n\ndef edge", ["    return a * b\n\n\ndef edge", "    return 9\n\n\ndef edge"]),
    "edge": ("        * a\n", ["        * -a\n", "        * a * 1\n"]),
    "fits": ("    if a > LIMIT:\n", ["    a += 1\n    if a > LIMIT:\n", "    a -= 5\n    if a > LIMIT:\n"]),
    "limit": ("LIMIT = 10", ["LIMIT = 12", "LIMIT = 8 + 2"]),
}


WHOLE = examples(1, 0)
"""An example of the law about verdicts takes four seconds: a quick run has one."""


class Counting(Lab):
    """A lab with scorers whose runs of the tests can be seen."""

    def __init__(self, provider, folder, files, *command):
        super().__init__(provider, folder, files, *command)
        self.baseline = find_baseline(provider, self.task, self.base, runs=1)

    def scorer(self, value=None, **options):
        scorer = StagedScorer(self.provider, self.task, self.base, self.baseline, value or PassingTests(), **options)
        self.path = (Node(0, (), (), self.base, self.baseline, scorer.root),)
        return scorer


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Counting(provider, tmp_path_factory.mktemp("repo"), FILES)


@pytest.fixture(scope="module")
def spectrum(provider, lab):
    return trace(provider, lab.task, lab.base, lab.baseline)


@pytest.fixture(scope="module")
def choosy(lab, spectrum):
    """A scorer that measures states by scopes, which are chosen by what tests executed."""
    return lab.scorer(spectrum=lambda: spectrum, timing=Timing(every_s=0.0))


def changed(**variants):
    text = SHAPES
    for part, variant in variants.items():
        old, new = CHANGES[part]
        assert text.count(old) == 1
        text = text.replace(old, new[variant])
    return text


def test_a_patch_that_reaches_no_goal_is_measured_by_its_goals_alone(lab):
    report, evaluation, runs = lab.scorer().score(lab.state({"shapes.py": changed(fits=1)}), lab.path)
    assert (set(report.outcomes), runs) == ({GOAL}, 1)
    assert evaluation.value == lab.path[0].value


def test_a_state_is_valued_once_whoever_comes_to_it(lab):
    """Models may be asked for it, and workers may come to one state at the same time."""
    valued, state = [], lab.state({"shapes.py": changed(fits=1)})

    class Watched:
        def evaluate(self, case):
            valued.append(case)
            return PassingTests().evaluate(case)

    scorer = lab.scorer(Watched())
    with ThreadPoolExecutor(2) as pool:
        found = [each.result()[1] for each in [pool.submit(scorer.score, state, lab.path) for _ in range(3)]]
    assert found[0] == found[1] == found[2]
    assert [bool(case.path) for case in valued] == [False, True]


def test_a_patch_that_breaks_much_is_refused_before_all_tests_ran(lab):
    report, evaluation, runs = lab.scorer().score(lab.state({"shapes.py": changed(area=0, edge=0)}), lab.path)
    assert runs == 3  # the goals, all until enough is broken, and the goals in a copy that has to fail
    assert not report.complete
    assert report.left_out
    assert report.passed(GOAL)
    assert not evaluation.solved
    assert evaluation.parts["harm"] >= 0.2


@pytest.mark.slow
def test_a_goal_that_a_cut_run_did_not_reach_keeps_its_result(provider, tmp_path):
    files = {name.replace("test_area", "test_zone"): text for name, text in FILES.items()}
    lab = Counting(provider, tmp_path, files)
    report, evaluation, _ = lab.scorer().score(lab.state({"shapes.py": changed(area=0, edge=0)}), lab.path)
    assert not report.complete
    assert report.passed(GOAL.replace("test_area", "test_zone"))
    assert evaluation.parts["progress"] == 1.0


@pytest.mark.slow
def test_what_executed_the_changed_lines_refuses_without_a_run_of_the_rest(lab, choosy):
    report, evaluation, _ = choosy.score(lab.state({"shapes.py": changed(area=0, fits=1)}), lab.path)
    assert not evaluation.solved
    assert report.failures == ("tests/test_fits.py::test_large",)
    assert report.passed(GOAL)
    assert "tests/test_colours.py::test_mix" not in report.outcomes


@pytest.mark.slow
def test_a_state_is_accepted_by_its_scope_and_a_patch_by_all_tests(lab, choosy):
    state = lab.state({"shapes.py": changed(area=0)})
    report, evaluation, _ = choosy.score(state, lab.path)
    assert evaluation.solved
    assert not report.complete
    assert report.scope == "2 of 11 tests: those that reach `shapes.py`"
    assessment = choosy.assess(state, lab.path, report)
    assert assessment.evaluation.solved
    assert assessment.report.complete
    assert assessment.report.passed("tests/test_colours.py::test_mix")
    assert assessment.runs == 2  # its scope, and all


def test_a_runner_that_tells_no_tests_apart_runs_once(provider, tmp_path):
    script = "import shapes, sys\nsys.exit(shapes.area(3, 3) != 9)\n"
    lab = Counting(provider, tmp_path, {"shapes.py": SHAPES, "check.py": script}, f"{sys.executable} check.py")
    _, evaluation, runs = lab.scorer().score(lab.state({"shapes.py": changed(area=0)}), lab.path)
    assert (evaluation.solved, runs) == (True, 1)


@given(
    area=st.integers(0, 1),
    others=st.fixed_dictionaries({}, optional={part: st.integers(0, 1) for part in CHANGES if part != "area"}),
    colours=st.sampled_from([COLOURS, COLOURS + "\n\nassert mix(1, 1) == 2\n", COLOURS.replace("+", "-")]),
    data=st.sampled_from(["1", "2"]),
)
@example(area=0, others={}, colours=COLOURS, data="2")  # what no executed line tells
@(example(area=0, others={"edge": 1}, colours=COLOURS, data="1") if WHOLE else lambda law: law)
@settings(
    phases=[Phase.explicit, Phase.generate][: 1 + WHOLE],
    max_examples=2,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_scopes_never_change_the_verdict(lab, choosy, area, others, colours, data):
    state = lab.state({"shapes.py": changed(area=area, **others), "colours.py": colours, "data.txt": data})
    whole = lab.scorer().assess(state, lab.path, before=SuiteReport())
    assert whole.report.complete
    assert lab.scorer().score(state, lab.path)[1].solved == whole.evaluation.solved
    by_scope = choosy.assess(state, lab.path, before=SuiteReport())
    assert by_scope.evaluation.solved == whole.evaluation.solved
    assert bool(by_scope.broken) == bool(whole.broken)


# ---- tests that depend on each other, and tests that depend on nothing

ORDERED = {
    "conftest.py": CONFTEST,
    "shapes.py": SHAPES,
    "tests/test_a.py": "import shapes\n\n\ndef test_begin():\n    shapes.begun = True\n",
    "tests/test_area.py": FILES["tests/test_area.py"],
    "tests/test_b.py": "import shapes\n\n\ndef test_go_on():\n    assert shapes.begun\n    shapes.area(1, 2)\n",
    "tests/test_z.py": "import time\n\n\ndef test_slow():\n    time.sleep(0.3)\n",
}


@pytest.mark.slow
def test_a_test_that_fails_without_the_others_refuses_nothing(provider, tmp_path):
    lab = Counting(provider, tmp_path, ORDERED)
    spectrum = trace(provider, lab.task, lab.base, lab.baseline)
    scorer = lab.scorer(spectrum=lambda: spectrum, timing=Timing(every_s=0.0))
    _, evaluation, _ = scorer.score(lab.state({"shapes.py": changed(area=0)}), lab.path)
    assert evaluation.solved


POLLUTED = {
    "conftest.py": CONFTEST,
    "shapes.py": SHAPES,
    "tests/test_area.py": FILES["tests/test_area.py"],
    "tests/test_late.py": "import shapes\n\n\ndef test_late():\n    assert not hasattr(shapes, 'used')\n",
}


@pytest.mark.slow
def test_a_test_that_fails_only_after_the_others_refuses_in_the_end(provider, tmp_path):
    lab = Counting(provider, tmp_path, POLLUTED)
    scorer = lab.scorer()
    state = lab.state(
        {"shapes.py": SHAPES.replace("    return a + b", "    global used\n    used = 1\n    return a * b")}
    )
    report, _, _ = scorer.score(state, lab.path)
    assert report.flaky == ("tests/test_late.py::test_late",)
    assessment = scorer.assess(state, lab.path, report)
    assert not assessment.evaluation.solved
    assert assessment.runs == 2


# ---- a test that fails when the weather is bad

WEATHER = {
    "conftest.py": CONFTEST,
    "shapes.py": SHAPES,
    "tests/test_area.py": FILES["tests/test_area.py"],
    "tests/test_sky.py": "import os\n\n\ndef test_sky():\n    assert not os.path.exists('/tmp/rain')\n",
}
SKY = "tests/test_sky.py::test_sky"


class Weather:
    """A provider in some of whose runs it rains."""

    def __init__(self, provider):
        self.provider, self.rains = provider, []

    def __getattr__(self, name):
        return getattr(self.provider, name)

    @contextmanager
    def scratch(self, *given):
        with self.provider.scratch(*given) as box:
            if self.rains and self.rains.pop(0):
                box.write("/tmp/rain", b"")
            yield box


@pytest.fixture(scope="module")
def outside(provider, tmp_path_factory):
    return Counting(Weather(provider), tmp_path_factory.mktemp("outside"), WEATHER)


@pytest.fixture(scope="module")
def repaired(outside):
    return outside.state({"shapes.py": changed(area=0)})


@pytest.fixture(scope="module")
def seen(outside, repaired):
    """What a search saw of the patch."""
    outside.provider.rains = []
    return outside.scorer().score(repaired, outside.path)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("rains", "solved"), [([0, 1, 0], True), ([0, 1, 1], False)])
def test_a_regression_that_passes_the_second_time_does_not_refuse_a_patch(outside, repaired, rains, solved):
    outside.provider.rains = list(rains)
    report, evaluation, runs = outside.scorer().score(repaired, outside.path)
    assert evaluation.solved == solved
    assert report.flaky == ((SKY,) if solved else ())
    assert runs == 4


@pytest.mark.slow
@pytest.mark.parametrize(("rains", "solved"), [([1, 0], True), ([1, 1], False), ([0], True)])
def test_a_patch_is_lost_in_its_verification_by_what_fails_twice_only(outside, repaired, seen, rains, solved):
    outside.provider.rains = list(rains)
    assessment = outside.scorer().assess(repaired, outside.path, seen)
    assert assessment.evaluation.solved == solved
    assert assessment.runs == len(rains) + 1
    assert assessment.report.flaky == ((SKY,) if rains == [1, 0] else ())


def test_more_runs_of_the_base_state_find_rarer_flaky_tests(outside):
    outside.provider.rains = [0, 0, 1]
    assert find_baseline(outside.provider, outside.task, outside.base, runs=3).flaky == (SKY,)


@pytest.mark.slow
def test_the_result_names_what_was_found_to_be_flaky(provider, tmp_path):
    repo = means(tmp_path / "repo")
    (repo / "test_sky.py").write_text(WEATHER["tests/test_sky.py"])
    weather = Weather(provider)
    weather.rains = [0, 0, 0, 0, 0, 0, 1, 0]  # three runs of the base state, the goals, all, a copy, the verification
    with Run.open(tmp_path / "run") as run:
        parts = Components(weather, edits(FIX), BestFirst(), PassingTests(), Budget(), baseline_runs=3)
        result = solve(task(repo), parts, run)
    assert (result.status, weather.rains) == ("solved", [])
    assert any("test_sky.py::test_sky" in note for note in result.notes)
