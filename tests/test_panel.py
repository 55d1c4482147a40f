"""A panel asks each policy as often as its children are worth it, and goes by the tree alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.policy.panel import Panel, PolicyStats
from tests.policies import Scripted
from tests.test_tree import trees
from tests.trees import node, tree

A, B = Scripted(lambda position: None, "a"), Scripted(lambda position: None, "b")


def proposed(id, parent, value, policy_id):
    return replace(node(id, parent, value), policy_id=policy_id)


def picks(made, node_id=0, times=200, panel=Panel((A, B))):  # noqa: B008
    return Counter(panel.pick(made, node_id, Random(n)).policy_id for n in range(times))


def test_the_policy_with_the_better_children_is_asked_more_often():
    made = tree(node(0), *(proposed(n, 0, 0.9 if n % 2 else 0.1, "a" if n % 2 else "b") for n in range(1, 9)))
    assert picks(made)["a"] > 180


def test_what_a_policy_did_elsewhere_counts_less_than_what_it_did_here():
    made = tree(node(0), *(proposed(n, 0, 0.9 if n % 2 else 0.1, "a" if n % 2 else "b") for n in range(1, 9)))
    made.add(proposed(9, 1, 0.0, "a"))
    made.add(proposed(10, 1, 1.0, "b"))
    elsewhere, here = picks(made, node_id=2), picks(made, node_id=1)
    assert elsewhere["a"] > here["a"]


def test_work_in_flight_and_failures_make_a_policy_wait():
    made = tree(node(0))
    even = picks(made)["a"]
    for _ in range(4):
        made.begin(0, policy_id="a")
    flying = picks(made)["a"]
    for _ in range(4):
        made.end(0, policy_id="a")
        made.fail(0, "unreadable", policy_id="a")
    assert 70 < even < 130
    assert flying < even / 2
    assert picks(made)["a"] == flying


def test_the_numbers_that_are_drawn_from_are_the_formula():
    made = tree(node(0), proposed(1, 0, 0.5, "a"), proposed(2, 1, 0.25, "a"))
    made.fail(0, "no", policy_id="a")
    mean = (1 + 0.5 + 0.25) / (2 + 2)
    posterior = Panel((A, B), trust=3.0).posterior(made, 0, "a")
    assert posterior == pytest.approx((3 * mean + 0.5, 3 * (1 - mean) + 2 - 0.5))


def test_a_policy_that_has_nothing_left_at_a_node_is_not_asked_there():
    made = tree(node(0), node(1, 0))
    made.exhaust_for(0, "a")
    assert picks(made, 0) == {"b": 200}
    assert len(picks(made, 1)) == 2
    made.exhaust_for(0, "b")
    assert Panel((A, B)).pick(made, 0, Random(0)) is None


@given(trees(), st.integers(0, 9))
def test_a_pick_depends_on_the_tree_and_the_generator_only(made, seed):
    first = Panel((A, B)).pick(made, 0, Random(seed))
    assert Panel((A, B)).pick(made, 0, Random(seed)) is first


@given(trees(), st.data())
def test_standings_that_were_kept_equal_those_made_now(made, data):
    kept = made.view("kept", PolicyStats)
    for _ in range(data.draw(st.integers(0, 5))):
        parent = data.draw(st.integers(0, len(made) - 1))
        made.add(proposed(len(made), parent, data.draw(st.floats(0, 1)), data.draw(st.sampled_from("ab"))))
    fresh = made.view("fresh", PolicyStats)
    assert (kept.count, kept.value_sum) == (fresh.count, fresh.value_sum)


@pytest.mark.parametrize(("members", "trust"), [((), 1.0), ((A, A), 1.0), ((A, B), 0.0)])
def test_a_panel_that_makes_no_sense_is_refused(members, trust):
    with pytest.raises(ValueError, match=r"policies|trust"):
        Panel(members, trust)
