"""`auto`: where the next line of work begins, and how single edits are searched."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from rich.console import Console

from agent.analysis.report.progress import Progress
from agent.analysis.report.why import explain
from agent.build.factories import search_of
from agent.config import load
from agent.run.events import Added
from agent.search.auto import Auto
from agent.search.best_first import BestFirst
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES, SINGLE_EDITS
from tests.test_search_graph import two_halves
from tests.test_tree import trees
from tests.trees import node, tree


def begins_at(made):
    """Where the next line of work branches off."""
    return Auto().select(made, Random(0)).node


def some_states():
    """Node 1 is worth most; 2 and 3, below it, are worth the same as each other."""
    return tree(node(0), node(1, 0, 0.6), node(2, 1, 0.5), node(3, 1, 0.5))


def test_a_line_of_work_begins_at_the_state_of_highest_value():
    assert begins_at(tree(node(0))) == 0
    assert begins_at(some_states()) == 1


def test_of_equals_at_the_one_where_fewest_began_and_then_at_the_newest():
    made = some_states()
    made.close(1)
    assert begins_at(made) == 3
    made.fail(3)
    assert begins_at(made) == 2
    made.begin(2)
    assert begins_at(made) == 3


def test_no_line_begins_where_one_was_submitted_or_where_nothing_is_left():
    made = tree(node(0), node(1, 0, 0.6, terminal=True))
    assert begins_at(made) == 0
    made.close(0)
    assert Auto().select(made, Random(0)) is None


def test_states_that_complete_each_other_are_merged_first():
    for settings in ({}, {"single_edits": True}):
        choice = Auto(**settings).select(two_halves(), Random(0))
        assert (choice.act, choice.node, choice.other) == ("fuse", 1, 2)
        assert choice.because.startswith("graph: ")


@given(trees())
def test_single_edits_are_searched_best_first(made):
    choice = Auto(single_edits=True).select(made, Random(0))
    best_first = BestFirst(**SINGLE_EDITS["best_first"]).select(made, Random(0))
    assert (choice is None) == (best_first is None)
    if choice and best_first:
        assert choice.because.startswith("search: best_first, since ")
        assert (choice.node, choice.reasons) == (best_first.node, best_first.reasons)


@given(trees())
def test_nothing_that_may_be_expanded_is_worth_more_than_what_is_chosen(made):
    choice = Auto().select(made, Random(0))
    values = [made[node_id].value for node_id in range(len(made)) if made.expandable(node_id)]
    assert (choice is None) == (not values)
    if choice:
        assert made.expandable(choice.node)
        assert made[choice.node].value == pytest.approx(max(values), abs=1e-3)


@pytest.mark.parametrize(("policy", "single"), [("mutate", True), ("openai/tiny", False)])
def test_is_what_runs_unless_another_is_named_and_knows_the_policys_grain(policy, single):
    assert search_of(load(flags={"policy.name": policy})) == Auto(single_edits=single)


def test_single_edits_have_defaults_of_their_own_and_what_is_given_goes_before():
    given = {"policy.name": "mutate", "search.name": "mcts"}
    assert search_of(load(flags=given)) == Mcts(c=1.4, alpha=0.5)
    assert search_of(load(flags=given | {"search.c": 0.3})) == Mcts(c=0.3, alpha=0.5)
    assert search_of(load(flags=given | {"policy.name": "openai/tiny"})) == Mcts()
    assert all(SEARCHES[name](**options) for name, options in SINGLE_EDITS.items())


def test_why_is_said_once_and_kept(capsys: pytest.CaptureFixture[str]):
    made, said = some_states(), Progress()
    choice = Auto().select(made, Random(0))
    events = [Added(n, choice=choice if n.parents else None) for n in made]
    for event in events:
        said(event)
    assert capsys.readouterr().err.count(choice.because) == 1
    console = Console(width=200)
    console.print(explain(events, 2).as_text())
    assert choice.because in capsys.readouterr().out
