"""Results that are known: found once, the same as what was found, also in a later session."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.measure import Outcome, SuiteReport
from agent.measure.results import Results

KEY = ("digest", "t::a")
REPORT = SuiteReport({"t::a": Outcome.PASSED}, duration_s=0.25, messages={"t::a": "\udc80"})

texts = st.text(st.characters(codec=None), max_size=5)
reports = st.builds(
    SuiteReport,
    outcomes=st.dictionaries(texts, st.sampled_from(Outcome)),
    duration_s=st.floats(0, 1e6),
    messages=st.dictionaries(texts, texts),
    durations=st.dictionaries(texts, st.floats(0, 1e6)),
    complete=st.booleans(),
    left_out=st.integers(0, 9),
    output=texts,
    flaky=st.lists(texts).map(tuple),
)


def never():
    raise AssertionError("it was known")


@settings(deadline=None, max_examples=50)
@example(report=SuiteReport({"\ud800": Outcome.FAILED}, messages={"\ud800": "\udc80"}), key=("\ud800",))
@given(report=reports, key=st.lists(texts, min_size=1).map(tuple))
def test_a_later_session_knows_what_was_found(tmp_path_factory, report, key):
    folder = tmp_path_factory.mktemp("run") / "reports"
    assert Results(folder).find(key, lambda: report, keep=True) == (report, True)
    assert Results(folder).find(key, never, whole=False) == (report, False)
    assert Results(folder, "other rules").get(key) is None
    assert Results(folder).get((*key, "more")) is None


def test_a_result_that_was_not_kept_is_known_in_its_session_only(tmp_path):
    results = Results(tmp_path)
    results.find(KEY, lambda: REPORT)
    assert results.find(KEY, never) == (REPORT, False)
    assert Results(tmp_path).get(KEY) is None


def test_a_result_that_is_not_valid_may_be_the_fault_of_the_moment(tmp_path):
    Results(tmp_path).find(KEY, lambda: SuiteReport(valid=False), keep=True)
    assert Results(tmp_path).get(KEY) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"outcomes": {"a": "fine"}}'])
def test_a_file_that_cannot_be_read_is_no_result(tmp_path, damage):
    Results(tmp_path).find(KEY, lambda: REPORT, keep=True)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert Results(tmp_path).find(KEY, lambda: REPORT) == (REPORT, True)


def test_a_run_that_was_cut_short_is_no_answer_for_who_asks_for_all():
    cut = SuiteReport({"t::a": Outcome.FAILED}, left_out=3, complete=False)
    results = Results()
    results.find(KEY, lambda: cut, whole=False)
    assert results.find(KEY, never, whole=False) == (cut, False)
    assert results.find(KEY, lambda: REPORT) == (REPORT, True)
    assert results.find(KEY, never, whole=False) == (REPORT, False)


def test_of_workers_that_ask_for_the_same_at_the_same_time_one_finds_it():
    results, together, found = Results(), Barrier(8), []

    def ask(_):
        together.wait()
        return results.find(KEY, lambda: found.append(1) or REPORT)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert found == [1]
    assert sorted(made for _, made in answers) == [False] * 7 + [True]
    assert all(report is REPORT for report, _ in answers)


def test_one_that_fails_leaves_the_question_open():
    results = Results()
    with pytest.raises(OSError, match="full"):
        results.find(KEY, lambda: (_ for _ in ()).throw(OSError("full")))
    assert results.find(KEY, lambda: REPORT) == (REPORT, True)
