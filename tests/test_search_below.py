"""What views know of subtrees: right at any time, and taken in by as many steps as a tree has nodes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.run.tree.graph import StateGraph
from agent.run.tree.tree import Tree
from agent.search.adaptive import Adaptive
from agent.search.clade import Clade
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES
from agent.search.support.below import RankedChildren
from agent.search.swe_search import SweSearch
from tests.test_tree import subtree, trees
from tests.trees import node

ONE_CHILD = Mcts(widen=0.5, alpha=0, depth=10**6)
"""Grows a chain."""


@settings(max_examples=40)
@given(trees(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=8))
def test_siblings_are_ranked_by_what_is_below_them_now(made, changes):
    rank = dict.fromkeys(range(len(made)), 0)
    ranked = RankedChildren(made, lambda n: max(rank[m] for m in subtree(made, n)))
    for each in made:
        ranked.below(each.id)
    for at, to in changes:
        rank[at % len(made)] = to
        ranked.below(at % len(made))
        for parent in made.path(at % len(made)):
            children = [c.id for c in made.children(parent.id) if made.open_below(c.id)]
            now = sorted((-max(rank[m] for m in subtree(made, c)), c) for c in children)
            assert ranked.of(parent.id).best(len(made)) == [(-negative, child) for negative, child in now]


class CountedList(list):
    """Counts how often an element is read."""

    reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return super().__getitem__(place)


class Counting(StateGraph):
    """Counts the steps that are made upwards from its nodes."""

    def __init__(self):
        super().__init__()
        self._parents = CountedList()


@pytest.fixture(scope="module")
def deep():
    return [node(number, number - 1 if number else None, number / 5000) for number in range(5000)]


@pytest.mark.parametrize("search", [*(make() for make in SEARCHES.values()), ONE_CHILD], ids=repr)
def test_a_chain_of_5000_states_that_is_resumed_is_gone_on_with_as_if_it_had_not_been_left(search, deep):
    kept, resumed = Tree(), Tree()
    for each in deep:
        kept.add(each)
        resumed.add(each)
        if each.id % 1000 == 998:
            search.select(kept, Random(each.id))
    choice = search.select(kept, Random(0))
    assert choice == search.select(resumed, Random(0))
    assert (kept.visits(0), kept.value_max(0), kept.value_sum(4998)) == (5000, 0.9998, 4998 / 5000 + 4999 / 5000)


def test_a_long_way_down_without_a_decision_is_recorded_as_none(deep):
    chain = Tree()
    for each in deep:
        chain.add(each)
    choice = ONE_CHILD.select(chain, Random(0))
    assert (choice.node, len(choice.reasons)) == (4999, 1)


def grown_chain(search, nodes, monkeypatch, chosen_at):
    """The steps upwards that it took to grow a chain in which a search chooses at the sizes that are given."""
    monkeypatch.setattr("agent.run.tree.tree.StateGraph", Counting)
    chain = Tree()
    for number in range(nodes):
        chain.add(node(number, number - 1 if number else None, number / nodes))
        if number in chosen_at:
            assert search.select(chain, Random(0)) is not None
    return chain.structure._parents.reads


@pytest.mark.parametrize(
    "search", [Adaptive(), Clade(), Mcts(depth=10**6), SweSearch()], ids=lambda s: type(s).__name__
)
def test_a_chain_of_n_nodes_is_taken_in_by_a_few_steps_a_node(search, monkeypatch):
    assert 0 < grown_chain(search, 400, monkeypatch, {399}) <= 6 * 400
