"""Every algorithm keeps the contract."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
