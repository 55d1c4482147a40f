"""SWE-Search's terms by hand, on its own scale: a value v is a reward of 200 v - 100."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random

import pytest
from hypothesis import given

from agent.search.swe_search import SweSearch
from tests.test_search import chosen, grow
from tests.trees import Grown, histories, node, tree


def terms(made, node_id, search=None):
    """Those that are not 0."""
    found = (search or SweSearch()).terms(made, node_id)
    return {name: pytest.approx(value) for name, value in found.items() if value}


def test_a_leaf_of_high_reward_has_a_bonus():
    made = tree(node(0, value=0.5), node(1, 0, 0.8), node(2, 0, 0.6))
    bound = sqrt(log(3) / 1)
    assert terms(made, 1) == {"exploitation": 60, "exploration": bound, "depth_penalty": -0.8, "high_value_leaf": 50}
    assert terms(made, 2) == {"exploitation": 20, "exploration": bound, "depth_penalty": -0.8}


def test_the_root_has_the_bonus_for_depth():
    made = tree(node(0, value=0.6))
    assert terms(made, 0, SweSearch(depth_bonus=2.0)) == {"exploitation": 20, "depth_bonus": 2 * exp(0.8)}


def test_a_good_state_with_one_bad_child_has_a_second_chance():
    made = tree(node(0, value=0.8), node(1, 0, 0.4))
    assert terms(made, 0) == {"exploitation": 60, "bad_child": 5 * (60 + 20)}
    made.add(node(2, 0, 0.4))
    assert terms(made, 0) == {"exploitation": 60}


def test_a_very_good_child_costs_a_little():
    made = tree(node(0, value=0.6), node(1, 0, 0.88))
    assert terms(made, 0) == {"exploitation": 20, "high_value_child": -5}


def test_a_poor_leaf_below_a_good_state_is_lifted():
    made = tree(node(0, value=0.9), node(1, 0, 0.2), node(2, 0, 0.3))
    assert terms(made, 1)["high_value_parent"] == 50 + 60
    assert "high_value_parent" not in terms(tree(node(0, value=0.7), node(1, 0, 0.2)), 1)


def test_a_finished_path_is_left():
    made = tree(node(0, value=0.2), node(1, 0, 0.3), node(2, 1, 0.4), node(3, 2, 1.0, terminal=True))
    assert terms(made, 1)["finished"] == -50
    assert "finished" not in terms(made, 0)


def test_expansions_without_a_child_cost_their_number_squared():
    made = tree(node(0, value=0.5), node(1, 0, 0.3))
    made.fail(0)
    made.merge(0, 1)
    made.begin(0)
    assert terms(made, 0)["fruitless"] == -25 * 3**2


def test_all_nodes_of_the_tree_compete():
    """In the order of their rewards, as long as the constants are as published."""
    made = tree(node(0, value=0.1), node(1, 0, 0.2), node(2, 0, 0.45), node(3, 1, 0.7), node(4, 3, 0.65))
    order = []
    while (selected := chosen(SweSearch(children=3), made)) is not None:
        order.append(selected)
        made.close(selected)
    assert order == [3, 4, 2, 1, 0]


def test_a_node_is_expanded_no_more_often_than_is_allowed():
    made = tree(node(0))
    grow(SweSearch(children=2, depth=3), made, lambda n: n / 100, 30)
    assert max(made.expansions(n.id) for n in made) == 2
    assert max(made.depth(n.id) for n in made) == 3


def test_workers_spread():
    made = tree(node(0, value=0.1), node(1, 0, 0.6), node(2, 0, 0.55))
    for expected in (1, 2):
        assert chosen(SweSearch(), made) == expected
        made.begin(expected)


def test_the_score_is_the_sum_of_the_terms():
    made = tree(node(0, value=0.8), node(1, 0, 0.4), node(2, 1, 0.7))
    reason = SweSearch().select(made, Random(0)).reasons[0]
    for each in (reason.terms, reason.rival_terms):
        assert each["score"] == pytest.approx(sum(each.values()) - each["score"])
    assert reason.among == 3


@given(history=histories)
def test_it_chooses_what_a_scan_of_all_nodes_chooses(history):
    search, grown = SweSearch(children=3, depth=4, depth_bonus=9.0), Grown()
    for change in history:
        grown.happens(*change)
        made = grown.tree
        scores = {n.id: search.score(made, n.id) for n in made if search.competes(made, n.id)}
        assert chosen(search, made) == min(scores, key=lambda n: (-scores[n], n), default=None)


@pytest.mark.parametrize("name", ["children", "depth"])
def test_a_setting_without_a_meaning_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        SweSearch(**{name: 0})
