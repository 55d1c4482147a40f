"""Independent rollouts."""

from __future__ import annotations

from agent.search.best_of_n import BestOfN
from tests.test_search import chosen, grow
from tests.trees import node, tree


def test_best_of_n_finishes_a_rollout_before_it_begins_the_next():
    assert grow(BestOfN(n=2, depth=2), tree(node(0)), lambda n: 0.0, 9) == [0, 1, 0, 3]


def test_best_of_n_begins_another_rollout_while_one_is_in_flight():
    made = tree(node(0), node(1, 0))
    made.begin(1)
    assert chosen(BestOfN(n=2), made) == 0
