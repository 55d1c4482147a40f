"""The simulation of a second round: what it says of the gate, of the choice among rounds, and of what is passed on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.perf.refine_sim import EASY, HARD, is_right, refined

SEEDS = range(40)


def test_a_rollout_is_the_likelier_right_the_more_right_priors_it_is_told_of() -> None:
    setting = replace(HARD, priors=3)
    right = [sum(is_right(setting, number, seed) for seed in range(600)) for number in range(4)]
    assert right == sorted(right)
    assert all(more - less > 30 for less, more in pairwise(right))


def test_nothing_is_gained_where_summaries_are_not_read() -> None:
    deaf = replace(HARD, takes=0.0, misled=0.0)
    none, all_ = (sum(is_right(deaf, number, seed) for seed in range(600)) for number in (0, 4))
    assert abs(none - all_) < 25


@pytest.mark.parametrize(
    "setting", [replace(HARD, gate=False, rounds=3), replace(HARD, misled=0.6)], ids=["", "misled"]
)
def test_a_later_round_never_leaves_a_worse_answer_by_the_tests(setting) -> None:
    for seed in SEEDS:
        progress = refined(setting, seed).progress
        assert list(progress) == sorted(progress)


def test_a_right_answer_stays_right_where_the_judge_is_always_right() -> None:
    runs = [refined(replace(HARD, finds=0.6, q=1.0, gate=False), seed) for seed in SEEDS]
    was_right = [run for run in runs if run.answers[0] == HARD.whole]
    assert len(was_right) > 5
    assert all(run.answers[-1] == HARD.whole for run in was_right)


def test_easy_tasks_take_no_rollout_of_a_second_round_and_hard_ones_do() -> None:
    easy, hard = ([refined(setting, seed) for seed in SEEDS] for setting in (EASY, HARD))
    routed = [run.later for run in easy if run.why.startswith("easy")]
    assert len(routed) > 35
    assert sum(routed) == 0
    assert sum(run.later > 0 for run in hard) > 10


def test_the_gate_saves_rollouts_and_a_second_round_finds_what_the_first_has_not() -> None:
    gated, all_ = ([refined(replace(HARD, gate=gate), seed) for seed in SEEDS] for gate in (True, False))
    assert sum(run.later for run in gated) < sum(run.later for run in all_) == 8 * len(SEEDS)
    before, after = (sum(run.answers[end] == HARD.whole for run in all_) for end in (0, -1))
    assert after > before + 8


def test_the_same_seed_gives_the_same_run() -> None:
    assert refined(HARD, 3) == refined(HARD, 3) != refined(HARD, 4)
