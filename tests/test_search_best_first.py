"""The best state first, less and less willingly."""

from __future__ import annotations

from math import log2

import pytest

from agent.search.best_first import BestFirst
from tests.test_search import chosen
from tests.trees import node, tree


def test_best_first_takes_the_highest_value():
    made = tree(node(0, value=0.1), node(1, 0, 0.3), node(2, 0, 0.9), node(3, 1, 0.4))
    assert chosen(BestFirst(), made) == 2


def test_best_first_tires_of_a_node_and_of_its_level_by_the_formula():
    made = tree(node(0, value=0.5), *(node(i, 0, 0.5) for i in range(1, 4)), node(4, 1, 0.5))
    assert BestFirst(fatigue=0.1).score(made, 0, level=7) == pytest.approx(0.5 - 0.1 * (log2(4) + log2(8)))
    assert BestFirst(fatigue=0.1).score(made, 1, level=7) == pytest.approx(0.5 - 0.1 * (log2(2) + 2 * log2(8)))


@pytest.mark.parametrize("crowd", [1, 9])
def test_half_good_states_do_not_starve_the_root(crowd):
    """Nodes 1 to `crowd` are worth 0.4 and the root 0.1; what they lead to is closed at once."""
    made = tree(node(0, value=0.1), *(node(i, 0, 0.4) for i in range(1, crowd + 1)))
    for _ in range(600):
        selected = chosen(BestFirst(), made)
        made.add(node(len(made), selected, 0.0, terminal=True))
    below = sum(made.expansions(n) for n in range(1, crowd + 1))
    assert 30 < below < made.expansions(0)


def test_best_first_leaves_states_that_helped_nothing_for_last():
    made = tree(node(0), *(node(i, 0, 0.0) for i in range(1, 50)))
    assert chosen(BestFirst(), made) == 0
    made.close(0)
    assert chosen(BestFirst(), made) == 1
