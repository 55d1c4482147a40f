"""Fault localisation: which lines are suspicious, and where lines are after edits."""

from __future__ import annotations

from math import isclose, sqrt

from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Edit
from agent.policy.mutate.history import retrace
from agent.policy.mutate.localise import boosted, crash_sites, ochiai
from tests.mutating import applied

LINES = {
    "good": [("m.py", 1), ("m.py", 2)],
    "bad": [("m.py", 1), ("m.py", 3)],
    "worse": [("m.py", 3), ("m.py", 4)],
    "unrelated": [("m.py", 9)],
}


def test_suspicion_is_ochiai():
    found = ochiai(LINES, {"bad", "worse"}, {"good"})["m.py"]
    assert isclose(found[3], 1.0)
    assert isclose(found[4], 1 / sqrt(2))
    assert isclose(found[1], 1 / sqrt(2 * 2))


def test_lines_that_no_failing_test_executed_are_not_suspicious():
    assert set(ochiai(LINES, {"bad"}, {"good", "worse"})["m.py"]) == {1, 3}


def test_a_failing_test_that_is_no_goal_does_not_count():
    assert 4 not in ochiai(LINES, {"bad"}, {"good"})["m.py"]


def test_the_line_where_a_failure_ended_is_the_most_suspicious():
    message = "m.py:1: in f\n    g()\nm.py:3: AttributeError\n"
    sharp = boosted(ochiai(LINES, {"bad", "worse"}, {"good"}), crash_sites([message], lambda path: path == "m.py"))
    assert max(sharp["m.py"], key=sharp["m.py"].get) == 3
    assert sharp["m.py"][4] < sharp["m.py"][3]


def test_a_failure_that_ended_in_a_test_says_nothing_of_the_sources():
    message = "m.py:3: in f\ntest_m.py:7: AssertionError\n"
    assert not crash_sites([message], lambda path: path == "m.py")


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["x\n", "p\nq\n", ""])), max_size=3))
def test_untouched_lines_are_found_again_after_any_edits(changes):
    data = "".join(f"line {n}\n" for n in range(1, 8)).encode()
    edits = []
    present = data
    for line, new in changes:
        lines = present.decode().splitlines(keepends=True)
        if line <= len(lines):
            edit = Edit("m.py", lines[line - 1], new, line)
            present = applied(present, [edit])
            edits.append(edit)
    history = retrace(present, edits)
    now = present.decode().splitlines()
    for base in range(1, 8):
        if f"line {base}" in now:
            assert now[history.line_of.get(base, base) - 1] == f"line {base}"


def test_what_an_edit_wrote_is_known_to_the_byte():
    edit = Edit("m.py", "    return a - b\n", "    return a + b\n", 2)
    present = b"def f(a, b):\n    return a + b\n"
    start = present.index(b"+")
    assert retrace(present, [edit]).written == ((start, start + 1),)


def test_an_edit_in_front_of_another_moves_what_that_wrote():
    first = Edit("m.py", "b\n", "B\n", 2)
    second = Edit("m.py", "a\n", "aaa\n", 1)
    assert retrace(b"aaa\nB\n", [first, second]).written == ((4, 5), (1, 3))
