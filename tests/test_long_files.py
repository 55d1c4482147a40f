"""Test files that take longer than a state may: some of their functions are run, those about the change first."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.measure import Outcome, SuiteReport
from agent.measure.baseline import joined
from agent.measure.measurer import Measurer, find_baseline
from agent.measure.regressions import regressions
from agent.measure.scopes.changed import FileChange
from agent.measure.scopes.durations import BOTH, FILE_S, TEST_S, Durations
from agent.measure.scopes.functions import most_relevant_first
from agent.measure.scopes.scopes import Scopes
from agent.measure.timing import Timing
from tests.measuring import CONFTEST, Lab

SHAPES = "def edge(a):\n    return 4 * a\n\n\ndef area(a, b):\n    return a * b\n"
EDGES = "".join(f"def test_{n}():\n    assert shapes.edge({n}) == {4 * n}\n\n\n" for n in range(30))
AREAS = """class Shared(object):
    def test_of_nothing(self):
        assert self.of(0, 5) == 0


class TestArea(Shared):
    def of(self, a, b):
        return shapes.area(a, b)

    @pytest.mark.parametrize("a", [1, 2])
    def test_square(self, a):
        assert self.of(a, a) == a * a
"""
LONG = "tests/test_shapes.py"
FILES = {
    "conftest.py": CONFTEST,
    "shapes.py": SHAPES,
    LONG: f"import pytest, shapes\n\n\n{EDGES}{AREAS}",
    "tests/test_corners.py": "import shapes\n\n\ndef test_corners():\n    assert shapes.edge(1) == 4\n",
}
OF_AREA = {f"{LONG}::TestArea::{test}" for test in ("test_of_nothing", "test_square[1]", "test_square[2]")}
LISTED = Timing(every_s=0.0, whole_s=0.0, scope_s=12.0, final_s=0.0)
"""The first run only lists the tests. By estimate a scope has time for 20 tests, and a part of a long file for 14."""


@pytest.fixture(scope="module")
def lab(provider, tmp_path_factory):
    return Lab(provider, tmp_path_factory.mktemp("long"), FILES)


@pytest.fixture
def measurer(lab):
    baseline = find_baseline(lab.provider, lab.task, lab.base, timing=LISTED)
    return Measurer(lab.provider, lab.task, lab.base, baseline, timing=LISTED)


def changed(old, new):
    assert SHAPES.count(old) == 1
    return {"shapes.py": SHAPES.replace(old, new)}


@pytest.mark.namespace
def test_of_a_long_file_the_tests_about_the_change_are_run_and_the_verdict_says_how_many(lab, measurer):
    report = measurer.measure(lab.state(changed("a * b", "a + b")))
    assert report.valid
    assert set(report.failures) == {f"{LONG}::TestArea::test_of_nothing", f"{LONG}::TestArea::test_square[1]"}
    assert report.outcomes.keys() >= {*OF_AREA, "tests/test_corners.py::test_corners"}
    part = sum(test.startswith(LONG) for test in report.outcomes)
    assert len(OF_AREA) < part < 20
    assert report.scope.endswith(f"those that best reach `shapes.py`, with {part} of about 32 tests of `{LONG}`")


@pytest.mark.namespace
@pytest.mark.parametrize("state", [("a * b", "a * 2"), ("4 * a", "5 * a - 7"), ("4 * a", "a * 4")])
def test_a_part_of_a_file_says_of_its_tests_what_a_run_of_all_says(lab, measurer, state):
    snapshot = lab.state(changed(*state))
    report = measurer.measure(snapshot)
    base = measurer.baseline.report
    assert set(base.outcomes) == set(report.outcomes)  # the same tests on both sides
    whole = measurer.measure_afresh(snapshot)
    assert report.outcomes == {test: whole.outcomes[test] for test in report.outcomes}
    assert set(regressions(base, report)) == set(regressions(base, whole))


@pytest.mark.namespace
def test_measured_durations_replace_the_estimates(lab, measurer):
    first = measurer.measure(lab.state(changed("a * b", "a + b")))
    later = measurer.measure(lab.state(changed("a * b", "a - b")))
    assert len(first.outcomes) < 20
    assert len(later.outcomes) == 34
    assert "tests of" not in later.scope


@pytest.mark.namespace
def test_what_a_run_takes_besides_its_tests_is_taken_off_the_next_scope_but_never_all_of_its_time(lab, measurer):
    scopes = Scopes(lab.provider, lab.base, measurer.baseline, measurer.protection, LISTED)
    states = [lab.state(changed("a * b", f"a * b * {n}")) for n in range(3)]
    first = len(scopes.of(states[0]).tests)
    scopes.learn(SuiteReport(duration_s=1.5, durations={"a.py::test_a": 0.5}))
    second = len(scopes.of(states[1]).tests)
    scopes.learn(SuiteReport(duration_s=60.0))
    third = len(scopes.of(states[2]).tests)
    assert (first, second, third) == (8, 5, 5)
    assert len(scopes.of(states[0]).tests) == first  # a state keeps its scope


@pytest.mark.namespace
def test_sources_without_which_tests_are_chosen_are_logged(lab, measurer, caplog):
    large = lab.state({"large.py": "#" * 3_000_001})
    caplog.set_level("INFO")
    scopes = Scopes(lab.provider, large, measurer.baseline, measurer.rules.protection, LISTED)
    assert set(scopes.index.files) == set(FILES)
    assert "1 Python file is too large" in caplog.text


@pytest.mark.namespace
def test_scopes_learn_from_each_run_of_a_scope_how_long_it_took(lab, measurer, monkeypatch):
    learned = []
    monkeypatch.setattr(Scopes, "learn", lambda scopes, report: learned.append(report))
    report = measurer.measure(lab.state(changed("a * b", "a * 3")))
    assert [(each.duration_s, each.durations) for each in learned] == [(report.duration_s, report.durations)]


@pytest.mark.namespace
def test_a_part_of_a_long_file_is_run_by_unittest_too(provider, tmp_path):
    edges = "".join(
        f"    def test_{n}(self):\n        self.assertEqual(shapes.edge({n}), {4 * n})\n\n" for n in range(30)
    )
    area = "    def test_area(self):\n        self.assertEqual(shapes.area(2, 3), 6)\n"
    text = f"import shapes, unittest\n\n\nclass TestShapes(unittest.TestCase):\n{edges}{area}"
    command = f"{sys.executable} -m unittest discover -s tests -t ."
    lab = Lab(provider, tmp_path, {"shapes.py": SHAPES, "tests/__init__.py": "", LONG: text}, command)
    baseline = find_baseline(provider, lab.task, lab.base, timing=LISTED)
    report = Measurer(provider, lab.task, lab.base, baseline, timing=LISTED).measure(
        lab.state(changed("a * b", "a + b"))
    )
    assert (report.adapter, report.valid) == ("unittest", True)
    assert report.failures == (f"{LONG}::TestShapes::test_area",)
    assert 5 < len(report.outcomes) < 20


# ---- which functions


def about(source, *names, words=()):
    return most_relevant_first(source, {"m.py": FileChange(names=frozenset(names), words=frozenset(words))})


def test_functions_that_mention_what_is_changed_come_before_those_named_like_it_and_these_before_the_rest():
    source = "".join(f"def test_{n}():\n    other()\n\n" for n in range(20))
    source += "def test_queue():\n    pass\n\ndef test_jobs():\n    Queue().due(1)\n"
    assert about(source, "Queue.due")[:2] == ["test_jobs", "test_queue"]


def test_the_tests_of_a_class_whose_others_mention_the_change_come_next():
    source = "".join(f"def test_{n}():\n    other()\n\n" for n in range(20))
    source += "class TestJobs:\n    def test_late(self):\n        due()\n\n    def test_early(self):\n        pass\n"
    assert about(source, "due")[:2] == ["TestJobs::test_late", "TestJobs::test_early"]


def test_inherited_tests_belong_to_each_class_and_those_of_a_mixin_to_none():
    source = "class Mixin:\n    def test_a(self): pass\n\nclass TestB(Mixin):\n    def test_b(self): pass\n"
    assert set(about(source, "x")) == {"TestB::test_a", "TestB::test_b"}


def test_what_is_no_python_has_no_functions():
    assert about("def test_a(:\n", "x") == []


@given(st.integers(10, 300), st.floats(0.1, 1))
def test_any_first_part_of_unlike_functions_is_spread_over_the_file(count, share):
    source = "\n".join(f"def test_{n}(): pass" for n in range(count))
    functions = about(source, "x")
    assert sorted(functions) == sorted(f"test_{n}" for n in range(count))
    taken = max(2, int(share * count))
    places = sorted(int(name.removeprefix("test_")) for name in functions[:taken])
    gaps = [after - before for before, after in zip([0, *places], [*places, count], strict=True)]
    assert max(gaps) <= 3 * count / taken + 1


# ---- how long they take

PASSED = Outcome.PASSED
REPORT = SuiteReport(
    dict.fromkeys(("a.py::t[1]", "a.py::t[2]", "a.py::u", "b.py::t", "c.py::t"), PASSED),
    durations={"a.py::t[1]": 1.0, "a.py::t[2]": 1.0, "a.py::u": 0.1, "b.py::t": 0.2, "c.py::t": 90.0},
    late={"b.py": 3, "d.py": 10},
    complete=False,
)


def test_a_file_takes_what_was_measured_and_its_late_tests_what_its_others_take():
    assert Durations(replace(REPORT, late={})).of_file("a.py") == pytest.approx(2.1)
    assert Durations(REPORT).of_file("b.py") == pytest.approx(BOTH * (0.2 + 3 * 0.2))


def test_what_the_base_state_has_yet_to_run_counts_twice():
    durations = Durations(REPORT)
    assert durations.of_functions("b.py", ["b.py::t", "b.py::u"]) == pytest.approx({"b.py::t": 0.2, "b.py::u": 0.8})


def test_a_slow_file_does_not_make_the_estimates_of_the_others_high():
    assert Durations(REPORT).of_file("d.py") == pytest.approx(BOTH * 10 * 0.2)


def test_a_function_takes_what_its_tests_took_and_an_unmeasured_one_as_many_tests_as_the_mean():
    durations = Durations(REPORT)
    assert durations.of_functions("a.py", ["a.py::t", "a.py::u"]) == pytest.approx({"a.py::t": 2.0, "a.py::u": 0.1})
    assert durations.of_functions("d.py", ["d.py::t", "d.py::u"]) == pytest.approx({"d.py::t": 2.0, "d.py::u": 2.0})


def test_before_anything_was_measured_a_test_takes_a_tenth_of_a_second():
    durations = Durations(SuiteReport(late={"a.py": 7}, complete=False))
    assert durations.of_file("a.py") == pytest.approx(BOTH * 7 * TEST_S)
    assert durations.of_file("new.py") == BOTH * FILE_S


# ---- what is known of a file that ran in part


def test_the_tests_of_a_part_are_no_longer_late_and_the_rest_of_the_file_still_is():
    base = SuiteReport(late={"a.py": 10, "b.py": 5}, complete=False)
    part = SuiteReport({"a.py::t[1]": PASSED, "a.py::t[2]": PASSED}, asked=("a.py::t", "a.py::u"), late={"a.py": 1})
    assert joined(base, replace(part, complete=False)).late == {"a.py": 8, "b.py": 5}


def test_a_parameter_that_a_state_lacks_is_broken_where_all_of_its_function_was_run():
    base = SuiteReport({"a.py::t[1]": PASSED, "a.py::t[2]": PASSED, "a.py::u": PASSED})
    report = SuiteReport({"a.py::t[1]": PASSED}, asked=("a.py::t",), complete=False)
    assert regressions(base, report) == ("a.py::t[2]",)
