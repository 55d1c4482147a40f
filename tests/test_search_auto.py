"""`auto`: which algorithm chooses, by what the tree shows."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from rich.console import Console

from agent.config import load
from agent.events import Added
from agent.named import search_of
from agent.report.progress import Progress
from agent.report.why import explain
from agent.search.astar import AStar
from agent.search.auto import Auto
from agent.search.best_first import BestFirst
from agent.search.best_of_n import BestOfN
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES, SINGLE_EDITS
from agent.search.swe_search import SweSearch
from tests.test_search_graph import two_halves
from tests.test_tree import trees
from tests.trees import node, tree


def chooser(made, **settings):
    """The name of the algorithm that chooses."""
    return Auto(**settings).select(made, Random(0)).because.split(":")[0]


def after_the_best(alike=0, better=0, worse=0):
    """Node 1 is the best and better than the base; below it so many are worth the same, and so many less."""
    base, first = node(0), node(1, 0, 0.6)
    others = [node(2 + i, 0, 0.1 if i < better else 0.0) for i in range(better + 2 * (not better))]
    below = [node(2 + len(others) + i, 1, 0.6 if i < alike else 0.5) for i in range(alike + worse)]
    return tree(base, first, *others, *below)


def test_a_branch_in_which_nothing_changes_any_more_is_left_for_a_new_one_where_most_of_those_promise():
    assert chooser(after_the_best(alike=6, better=4)) == "best_of_n"
    assert chooser(after_the_best(alike=5, better=4)) == "swe_search"  # only nine nodes since the best
    assert chooser(after_the_best(alike=8)) == "swe_search"  # the base was bettered once in three times
    assert chooser(after_the_best(alike=3, worse=4, better=4)) == "swe_search"  # values change below it
    assert chooser(after_the_best(alike=5, better=4), patience=9) == "best_of_n"


def test_where_proposals_repeat_the_cheapest_way_is_looked_for():
    made = after_the_best(worse=13)
    for known in (1, 1, 1):
        made.merge(0, known)
    assert chooser(made) == "swe_search"  # of nineteen expansions
    made.fail(0)
    assert chooser(made) == "astar"


def blind(tries, best=False, alike=0):
    """Of `tries` expansions of the base none helped, or the last, below which are some that changed nothing."""
    base = [node(0), *(node(1 + i, 0, 0.5 if best and i == tries - 1 else 0.0) for i in range(tries))]
    return tree(*base, *(node(len(base) + i, tries, 0.5) for i in range(alike)))


def test_where_most_proposals_change_nothing_the_base_is_stayed_with_for_forty_tries():
    assert chooser(blind(5)) == chooser(blind(39)) == "best_first"
    assert Auto().select(blind(39), Random(0)).node == 0
    assert chooser(blind(40)) == "swe_search"


def test_the_best_state_is_then_given_as_many_tries_as_it_took_to_find_it():
    assert Auto().select(blind(8, best=True, alike=7), Random(0)).node == 8
    assert chooser(blind(8, best=True, alike=7)) == "best_first"
    assert chooser(blind(8, best=True, alike=8)) == "swe_search"


def test_it_is_not_where_nothing_was_proposed_or_nothing_is_left_to_propose():
    assert chooser(tree(node(0))) == "swe_search"
    made = blind(9)
    made.close(0)
    assert chooser(made) == "swe_search"


def test_it_is_not_where_its_proposals_repeat_or_where_values_change():
    made = blind(9)
    made.merge(0, 3)
    assert chooser(made) == "swe_search"
    assert chooser(tree(node(0, value=0.5), *(node(1 + i, 0, 0.4) for i in range(9)))) == "swe_search"
    helped = [node(i, i - 1, 0.1 * i) for i in (1, 2, 3)]
    assert chooser(tree(node(0), *helped, *(node(4 + i, 0, 0.0) for i in range(9)))) == "swe_search"


def test_states_that_complete_each_other_are_merged_first():
    for settings in ({}, {"single_edits": True}):
        choice = Auto(**settings).select(two_halves(), Random(0))
        assert (choice.act, choice.node, choice.other) == ("fuse", 1, 2)
        assert choice.because.startswith("graph: ")


def test_single_edits_are_searched_best_first():
    assert (
        chooser(tree(node(0)), single_edits=True)
        == chooser(after_the_best(alike=9, better=9), single_edits=True)
        == "best_first"
    )


@given(trees())
def test_what_is_chosen_is_the_choice_of_the_algorithm_that_is_named(made):
    choice = Auto().select(made, Random(0))
    if choice is None:
        assert not made.open_below(0)
        return
    named = {"swe_search": SweSearch(), "best_of_n": BestOfN(n=10**6), "best_first": BestFirst(), "astar": AStar()}
    chosen = named[choice.because.split(":")[0]].select(made, Random(0))
    assert (choice.node, choice.reasons) == (chosen.node, chosen.reasons)


@pytest.mark.parametrize(("policy", "single"), [("mutate", True), ("openai/tiny", False)])
def test_is_what_runs_unless_another_is_named_and_knows_the_policys_grain(policy, single):
    assert search_of(load(flags={"policy.name": policy})) == Auto(single_edits=single)


def test_single_edits_have_defaults_of_their_own_and_what_is_given_goes_before():
    given = {"policy.name": "mutate", "search.name": "mcts"}
    assert search_of(load(flags=given)) == Mcts(c=1.4, alpha=0.5)
    assert search_of(load(flags=given | {"search.c": 0.3})) == Mcts(c=0.3, alpha=0.5)
    assert search_of(load(flags=given | {"policy.name": "openai/tiny"})) == Mcts()
    assert all(SEARCHES[name](**options) for name, options in SINGLE_EDITS.items())


def test_who_chose_and_why_is_said_once_and_kept(capsys: pytest.CaptureFixture[str]):
    made, said = after_the_best(worse=1), Progress()
    choice = Auto().select(made, Random(0))
    events = [Added(n, choice=choice if n.parents else None) for n in made]
    for event in events:
        said(event)
    assert capsys.readouterr().err.count("swe_search: the best states are gone on with") == 1
    console = Console(width=200)
    console.print(explain(events, 2).as_text())
    assert "swe_search: the best states are gone on with" in capsys.readouterr().out


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="patience=0 is too small"):
        Auto(patience=0)
