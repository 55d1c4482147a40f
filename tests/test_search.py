"""Every algorithm keeps the contract."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.files import to_json
from agent.run.tree.choice import Choice
from agent.search.registry import SEARCHES
from tests.test_tree import trees
from tests.tiers import examples
from tests.trees import Grown, histories, node, tree

CHOICES = TypeAdapter(Choice)


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

    @settings(max_examples=examples(40, 10))
    @given(history=histories, seed=st.integers(0, 9))
    def test_an_index_that_was_kept_chooses_as_one_that_is_made_now(self, name, history, seed):
        search, grown = SEARCHES[name](), Grown()
        for change in history:
            grown.happens(*change)
            selected = chosen(search, grown.tree, seed)
            assert selected is None or grown.tree.expandable(selected)
        assert search.select(grown.tree, Random(seed)) == search.select(grown.again(), Random(seed))

    @settings(max_examples=examples(40, 10))
    @given(history=histories, seed=st.integers(0, 9))
    def test_two_sessions_choose_as_one_does(self, name, history, seed):
        """Work in flight is what a second session does not know of: the first one has ended it."""
        search, grown = SEARCHES[name](), Grown()
        for change in history:
            grown.happens(*change)
            search.select(grown.tree, Random(seed))
        while grown.begun:
            grown.tree.end(grown.begun.pop())
        assert search.select(grown.again(), Random(seed)) == search.select(grown.tree, Random(seed))

    @settings(max_examples=examples(40, 10))
    @given(history=histories, seed=st.integers(0, 9))
    def test_a_choice_says_why_in_numbers_that_a_journal_can_hold(self, name, history, seed):
        grown = Grown()
        for change in history:
            grown.happens(*change)
        choice = SEARCHES[name]().select(grown.tree, Random(seed))
        if choice is not None:
            assert choice.reasons[-1].node == choice.node
            assert choice == CHOICES.validate_json(to_json(choice))
            for reason in choice.reasons:
                assert "score" in reason.terms
                assert reason.among >= (1 if reason.rival is None else 2)

    def test_nothing_is_selected_in_a_closed_tree(self, name):
        made = tree(node(0), node(1, 0, terminal=True))
        made.close(0)
        assert chosen(SEARCHES[name](), made) is None

    def test_a_lone_root_is_expanded(self, name):
        assert chosen(SEARCHES[name](), tree(node(0))) == 0


@pytest.mark.parametrize(
    "name", sorted(SEARCHES.keys() - {"adaptive", "beam", "go_explore", "linear", "reproduce", "strategies"})
)
def test_eight_workers_expand_eight_states_that_promise_the_same(name):
    """Of the others `linear` is alone, two expand each state several times before the next, one draws, one goes by
    kinds of states, of which these eight are one, and one begins lines of work at the base state."""
    made = tree(node(0, value=0.1), *(node(child, 0, 0.5) for child in range(1, 9)))
    taken = []
    for worker in range(8):
        taken.append(chosen(SEARCHES[name](), made, worker))
        made.begin(taken[-1])
    assert sorted(taken) == list(range(1, 9))


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
