"""Every algorithm keeps the contract, and each chooses what its formula says on small trees."""

from __future__ import annotations

from math import log, log2, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES
from tests.test_tree import trees
from tests.trees import node, tree


def chosen(search, made, seed=0):
    """The node that is selected, None when none is."""
    choice = search.select(made, Random(seed))
    return choice and choice.node


def grow(search, made, value_of, steps, seed=0):
    """Expand `steps` times without a sandbox; returns the order of selection."""
    order = []
    for step in range(steps):
        selected = chosen(search, made, f"{seed}/{step}")
        if selected is None:
            break
        order.append(selected)
        made.add(node(len(made), selected, value_of(len(made))))
    return order


@pytest.mark.parametrize("name", SEARCHES)
class TestContract:
    @given(made=trees(), seed=st.integers(0, 9))
    def test_a_selected_node_may_be_expanded(self, name, made, seed):
        selected = chosen(SEARCHES[name](), made, seed)
        assert selected is None or made.expandable(selected)

    @given(made=trees(), seed=st.integers(0, 9))
    def test_selecting_changes_nothing_and_is_repeatable(self, name, made, seed):
        search = SEARCHES[name]()
        before = [(made.visits(n.id), made.expansions(n.id)) for n in made]
        first = search.select(made, Random(seed))
        assert search.select(made, Random(seed)) == first
        assert SEARCHES[name]().select(made, Random(seed)) == first
        assert [(made.visits(n.id), made.expansions(n.id)) for n in made] == before

    def test_nothing_is_selected_in_a_closed_tree(self, name):
        made = tree(node(0), node(1, 0, terminal=True))
        made.close(0)
        assert chosen(SEARCHES[name](), made) is None

    def test_a_lone_root_is_expanded(self, name):
        assert chosen(SEARCHES[name](), tree(node(0))) == 0


def test_linear_follows_its_newest_node():
    assert grow(Linear(), tree(node(0)), lambda n: 0.0, 4) == [0, 1, 2, 3]


def test_linear_gives_up_after_its_attempts():
    made = tree(node(0))
    for _ in range(3):
        assert chosen(Linear(attempts=3), made) == 0
        made.fail(0)
    assert chosen(Linear(attempts=3), made) is None


def test_linear_never_runs_two_expansions_at_once():
    made = tree(node(0))
    made.begin(0)
    assert chosen(Linear(), made) is None


def test_best_of_n_finishes_a_rollout_before_it_begins_the_next():
    assert grow(BestOfN(n=2, depth=2), tree(node(0)), lambda n: 0.0, 9) == [0, 1, 0, 3]


def test_best_of_n_begins_another_rollout_while_one_is_in_flight():
    made = tree(node(0), node(1, 0))
    made.begin(1)
    assert chosen(BestOfN(n=2), made) == 0


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


def test_mcts_bound_is_the_formula():
    made = tree(node(0), node(1, 0, 0.5), node(2, 0, 0.2), node(3, 1, 0.9))
    assert Mcts(c=1.4).bound(made, 1) == pytest.approx((0.5 + 0.9) / 2 + 1.4 * sqrt(log(4) / 2))
    made.begin(3)
    assert Mcts(c=1.4).bound(made, 1) == pytest.approx((0.5 + 0.9) / 3 + 1.4 * sqrt(log(5) / 3))


def test_mcts_descends_to_the_highest_bound():
    made = tree(node(0), node(1, 0, 0.9), node(2, 0, 0.1))
    assert chosen(Mcts(c=0.1, widen=1, alpha=0.5), made) == 1


def test_mcts_spreads_its_workers():
    made = tree(node(0), node(1, 0, 0.6), node(2, 0, 0.55))
    search, nodes = Mcts(c=0.5, widen=1, alpha=0.0), []
    for _ in range(2):
        nodes.append(chosen(search, made))
        made.begin(nodes[-1])
    assert sorted(nodes) == [1, 2]


def test_mcts_widens_with_the_square_root_of_the_visits():
    made = tree(node(0))
    grow(Mcts(widen=2.0, alpha=0.5), made, lambda n: 0.1, 60)
    assert len(made.children(0)) in range(15, 18)


@pytest.mark.parametrize("name", ["best_first", "mcts"])
def test_a_search_finds_the_good_branch(name):
    """Node 2's descendants are worth more and more, all others nothing."""
    made = tree(node(0))
    rewards = {0: 0.0}
    for step in range(80):
        selected = chosen(SEARCHES[name](), made, step)
        rewards[len(made)] = min(0.9, rewards[selected] + 0.2) if selected == 2 or rewards[selected] > 0.3 else 0.0
        if len(made) == 2:
            rewards[2] = 0.4
        made.add(node(len(made), selected, rewards[len(made)]))
    assert made.best().value >= 0.8
