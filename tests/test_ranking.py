"""A ranking finds what sorting finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.search.support.ranking import Ranking

puts = st.tuples(st.integers(0, 30), st.none() | st.sampled_from([0.0, 0.25, 0.3, 1.0]))


@given(st.lists(st.lists(puts, max_size=12), max_size=12), st.integers(0, 5))
def test_the_best_are_those_of_a_sorted_list(rounds, most):
    ranking, items = Ranking(), {}
    for changes in rounds:
        for item, score in changes:
            ranking.put(item, score)
            items[item] = score
        ranked = sorted((-score, item) for item, score in items.items() if score is not None)
        assert ranking.best(most) == [(-negative, item) for negative, item in ranked[:most]]
        assert len(ranking) == len(ranked)
