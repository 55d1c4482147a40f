"""Advantages over trees: laws that hold in every tree, and numbers worked out for one."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.learning.export.advantages import EPSILON, Advantages, Peers, advantages
from agent.run.credit import Credit, node_credit
from agent.run.tree.tree import Tree
from tests.trees import node, tree

parents = st.lists(st.integers(0, 30), min_size=1, max_size=30)
trees = st.tuples(parents, st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=31, max_size=31))


def grown(history: tuple[list[int], list[float]]) -> Tree:
    """A tree whose n-th node has this value and is below the node of this number, counted round."""
    above, values = history
    return tree(node(0, value=values[0]), *(node(n, at % n, values[n]) for n, at in enumerate(above, 1)))


def compared(made: Tree, credit: dict[int, Credit]) -> dict[int, Advantages]:
    """Every step of a tree, with nothing but the tree."""
    peers = Peers()
    peers.collect(made, credit)
    return advantages(made, credit, {number: each.value for number, each in credit.items()}, peers)


def leaves(made: Tree, above: int) -> list[float]:
    """What the leaves at and below a node come to, counted one by one."""
    return [each.value for each in made if not made.children(each.id) and above in [n.id for n in made.path(each.id)]]


@given(trees)
def test_a_nodes_credit_is_the_mean_of_its_leaves_and_of_its_children_by_their_leaves(history) -> None:
    made = grown(history)
    credit = node_credit(made, lambda leaf: leaf.value)
    for each in made:
        mine = leaves(made, each.id)
        assert credit[each.id].value == pytest.approx(fmean(mine))
        assert (credit[each.id].leaves, credit[each.id].solved) == (len(mine), mine.count(1.0))
        if children := [credit[child.id] for child in made.children(each.id)]:
            weighted = sum(child.value * child.leaves for child in children)
            assert credit[each.id].value == pytest.approx(weighted / sum(child.leaves for child in children))


@given(trees)
def test_at_each_fork_the_advantages_add_up_to_nothing(history) -> None:
    made = grown(history)
    credit = node_credit(made, lambda leaf: leaf.value)
    found = compared(made, credit)
    for each in made:
        children = [found[child.id].fork for child in made.children(each.id)]
        assert sum(children) == pytest.approx(0, abs=1e-9)
        if len(children) == 1:
            assert (children[0], found[made.children(each.id)[0].id].anchor) == (0, 0)


@given(trees)
def test_against_all_trajectories_a_step_has_the_mean_of_what_grpo_gives_those_through_it(history) -> None:
    made = grown(history)
    rewards = leaves(made, 0)
    spread = stdev(rewards) if len(rewards) > 1 else 0.0
    credit = node_credit(made, lambda leaf: leaf.value)
    found = compared(made, credit)
    for each in list(made)[1:]:
        plain = [(reward - fmean(rewards)) / (spread + EPSILON) for reward in leaves(made, each.id)]
        assert found[each.id].trajectory == pytest.approx(fmean(plain), abs=1e-9)


@given(trees, st.sampled_from([0.0, 1.0]))
@settings(max_examples=50)
def test_where_all_fail_or_all_pass_nothing_is_better_than_anything(history, all_of_them: float) -> None:
    made = grown(history)
    credit = node_credit(made, lambda leaf: all_of_them)
    for each in compared(made, credit).values():
        assert (each.trajectory, each.fork, each.tree, each.anchor) == (0, 0, 0, 0)


def test_a_state_that_is_reached_again_counts_among_what_was_done_where_it_was_reached_from() -> None:
    """At the root: 1 is worth 0.5 (3 is solved, 4 is not), 2 is worth 0, and an edit led to 3, worth 1, once more. The
    mean is 0.5 and the deviation 0.5."""
    made = tree(node(0), node(1, 0), node(2, 0), node(3, 1, 1.0), node(4, 1))
    made.merge(0, 3, "again")
    credit = node_credit(made, lambda leaf: leaf.value)
    found = compared(made, credit)
    assert [found[n].anchor for n in (1, 2)] == pytest.approx([0.0, -0.5 / (0.5 + EPSILON)])
    assert [found[n].fork for n in (1, 2)] == pytest.approx(
        [0.25 / (0.125**0.5 + EPSILON), -0.25 / (0.125**0.5 + EPSILON)]
    )


def test_an_outlier_is_as_far_from_the_mean_as_the_deviation_says() -> None:
    """The mean of 0, 0, 3/4 is 1/4 and the sample's variance (1/16 + 1/16 + 4/16) / 2 = 3/16."""
    made = tree(node(0), node(1, 0), node(2, 0), node(3, 0, 0.75))
    spread = (3 / 16) ** 0.5 + EPSILON
    found = compared(made, node_credit(made, lambda leaf: leaf.value))
    expected = pytest.approx([-0.25 / spread, -0.25 / spread, 0.5 / spread])
    assert [each.fork for each in found.values()] == expected
    assert [each.trajectory for each in found.values()] == expected


def test_two_trees_that_come_to_a_state_by_different_ways_share_its_group() -> None:
    """Both do `a` and `b`, in either order, and then differ: what was done in the state that they have in common is
    worth 1 and 0, so that the one is as far above the mean as the other is below it."""
    one = tree(node(0), node(1, 0, state="a"), node(2, 1, state="ab"), node(3, 2, 1.0))
    other = tree(node(0), node(1, 0, state="b"), node(2, 1, state="ab"), node(3, 2, 0.0))
    peers, credit = Peers(), [node_credit(each, lambda leaf: leaf.value) for each in (one, other)]
    for each, worth in zip((one, other), credit, strict=True):
        peers.collect(each, worth)
    parts = [
        advantages(each, worth, dict.fromkeys(worth, 0.0), peers)
        for each, worth in zip((one, other), credit, strict=True)
    ]
    far = 0.5 / (0.5**0.5 + EPSILON)
    assert [part[3].anchor for part in parts] == pytest.approx([far, -far])
    assert [part[2].anchor for part in parts] == [0, 0]
    assert [part[3].trajectory for part in parts] == pytest.approx([far, -far])
