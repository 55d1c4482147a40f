"""What a tournament is worth in simulation: a judge that is right about a pair with probability q, over 500 seeds."""

from __future__ import annotations

from functools import cache
from math import erf, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from agent.solver.tournament import comparisons
from benchmarks.perf.tournament_sim import Setting, found, noise
from benchmarks.reports.report import wilson
from tests.tiers import slow_but

SEEDS = 500


@cache
def interval(way: str, setting: Setting) -> tuple[float, float]:
    """The 95 % interval of the share of seeds in which the best was found."""
    return wilson(sum(found(way, setting, seed) for seed in range(SEEDS)), SEEDS)


@pytest.mark.parametrize("q", slow_but([0.8], [0.7, 0.8]))
@pytest.mark.parametrize("other", ["flat, votes of a pair", "flat, equal reading", "score, equal votes"])
def test_a_tournament_finds_the_best_more_often_than_a_flat_vote_and_than_the_best_by_a_noisy_score(q, other):
    assert interval("tournament", Setting(q=q))[0] > interval(other, Setting(q=q))[1]


def test_a_flat_vote_with_as_many_ballots_that_each_read_more_is_no_worse_unless_many_at_once_confuse_the_judge():
    """What speaks against the tournament is kept in sight: 56 ballots that each read 8 candidates and not 2."""
    assert interval("flat, equal ballots", Setting(8))[0] > interval("tournament", Setting(8))[1]
    assert interval("flat, equal ballots", Setting(8, edge=0.5))[1] < interval("tournament", Setting(8))[0]


def test_nine_votes_find_the_best_more_often_than_one():
    assert interval("tournament", Setting(8, votes=9))[0] > interval("tournament", Setting(8, votes=1))[1]


@given(st.integers(2, 24), st.integers(1, 5), st.integers(0, 10**6))
@examples(max_examples=50, deadline=None)
def test_a_judge_that_is_always_right_finds_the_best_of_any_number(n, votes, seed):
    assert found("tournament", Setting(n, votes, q=1.0), seed)


def test_as_many_votes_are_spent_on_scores_as_in_the_tournament():
    assert Setting(16, 8).ballots == 8 * comparisons(16, 2) == 120


@pytest.mark.parametrize("q", [0.6, 0.8])
def test_two_scores_order_a_random_pair_as_often_as_the_judge_does(q):
    sigma, rng = noise(16, q), Random(1)
    pairs = [rng.sample(range(16), 2) for _ in range(2000)]
    right = sum((1 + erf(abs(one - other) / (2 * sigma))) / 2 for one, other in pairs) / len(pairs)
    assert right == pytest.approx(q, abs=0.02)
    assert sqrt(2) * sigma > 1
