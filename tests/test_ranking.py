"""A ranking finds what sorting finds."""

from __future__ import annotations

from math import log, sqrt

from hypothesis import given
from hypothesis import strategies as st

from agent.search.support.ranking import Ranking

numbers = st.sampled_from([0.0, 0.25, 0.3, 1.0])
puts = st.tuples(st.integers(0, 30), st.none() | st.tuples(numbers, st.integers(1, 9)))
asked = st.integers(1, 2000) | st.integers(10**5, 10**5 + 3000)


def score(facts, now):
    return facts[0] + sqrt(log(now + 1) / facts[1])


@given(st.lists(st.tuples(st.lists(puts, max_size=12), asked), max_size=12))
def test_the_two_best_are_those_of_a_sorted_list(rounds):
    ranking, items = Ranking(score, 0), {}
    for changes, now in rounds:
        for item, facts in changes:
            ranking.put(item, facts)
            items[item] = facts
        ranked = sorted((-score(facts, now), item) for item, facts in items.items() if facts is not None)
        assert ranking.best(now) == [(-negative, item) for negative, item in ranked[:2]]
        assert len(ranking) == len(ranked)


def test_the_smaller_items_come_first_among_equals_whatever_their_scores_are_made_of():
    ranking = Ranking(lambda facts, now: facts[0], 0)
    for item in (5, 3, 8, 1, 4):
        ranking.put(item, (1.0, -item))
    assert ranking.best(1) == [(1.0, 1), (1.0, 3)]
    ranking.put(1, (1.0, 8))
    ranking.put(3, (1.0, -8))
    assert ranking.best(1) == [(1.0, 1), (1.0, 3)]


def test_only_few_are_looked_at():
    looked_at = []
    ranking = Ranking(lambda facts, now: looked_at.append(facts) or score(facts, now), 1)
    for item in range(10_000):
        ranking.put(item, (item / 10_000, 5))
    ranking.best(1_000)
    looked_at.clear()
    assert [item for _, item in ranking.best(1_001)] == [9_999, 9_998]
    assert len(looked_at) < 100


def test_out_of_date_entries_do_not_pile_up():
    ranking = Ranking(score, 1)
    for change in range(5_000):
        ranking.put(change % 3, (change / 5_000, 1))
        ranking.best(1)
    assert len(ranking._heap) < 50
