"""The rates of real lines of work: what a batch of graded answers says."""

from __future__ import annotations

from benchmarks.perf.lines import Answer, rates


def answer(right: bool, reproduced: bool, score: float | None, requests: int = 3) -> Answer:
    return Answer("a", right, reproduced, score, requests, 1, 6)


def test_right_and_wrong_patches_are_counted_by_what_a_judge_gave_and_what_their_tests_show() -> None:
    found = [
        answer(True, True, 0.9, 2),
        answer(True, False, 0.4, 4),
        answer(False, False, 0.6),
        answer(False, False, None),
    ]
    lines = rates(found).splitlines()
    assert lines[0] == "| 4 answers |  |"
    assert "| right | 2 of 4 " in lines[2]
    assert "shows the issue | 1 of 4 " in lines[3]
    assert "| right, of those with such a test | 1 of 1 " in lines[4]
    assert "| right, of those without | 1 of 3 " in lines[5]
    assert "at least 0.5 | 1 of 2 " in lines[6]
    assert "scores 0.40 to 0.90" in lines[6]
    assert "at least 0.5 | 1 of 1 " in lines[7]
    assert lines[8].endswith("| 3, 1, 6 |")
