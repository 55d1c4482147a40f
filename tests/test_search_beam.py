"""Level by level, from the few best states of each."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given

from agent.measure import Outcome, SuiteReport
from agent.search.beam import Beam
from tests.test_search import chosen, grow
from tests.trees import Grown, histories, node, tree

VALUES = [0.0, 0.1, 0.5, 0.3, 0.2, 0.6, 0.2, 0.7, 0.0, 0.0, 0.0]


def test_the_best_of_each_level_are_expanded_as_often_as_is_asked_for():
    made = tree(node(0))
    order = grow(Beam(width=2, children=3, depth=2), made, lambda n: VALUES[n], 99)
    assert order == [0, 0, 0, 2, 2, 2, 3, 3, 3]


def test_the_next_level_follows_from_this_one():
    made = tree(node(0))
    order = grow(Beam(width=2, children=2, depth=3), made, lambda n: VALUES[n], 99)
    assert order == [0, 0, 2, 2, 1, 1, 5, 5, 3, 3]


def test_a_level_waits_for_what_is_in_flight_above_it():
    made = tree(node(0), node(1, 0, 0.5))
    made.begin(0)
    assert chosen(Beam(children=2), made) is None
    made.end(0)
    made.fail(0)
    assert chosen(Beam(children=2), made) == 1


def test_workers_share_a_level():
    made = tree(node(0), node(1, 0, 0.5), node(2, 0, 0.4))
    taken = []
    while (selected := chosen(Beam(width=2, children=2), made)) is not None:
        taken.append(selected)
        made.begin(selected)
    assert taken == [1, 1, 2, 2]


def test_failures_and_duplicates_use_up_expansions():
    made = tree(node(0), node(1, 0, 0.5))
    made.fail(1)
    made.merge(1, 0)
    assert chosen(Beam(width=1, children=2), tree(node(0), node(1, 0))) == 0
    made.merge(0, 1)
    assert chosen(Beam(width=1, children=2), made) is None


def test_a_finished_state_takes_no_place_in_a_beam():
    made = tree(node(0), node(1, 0, 0.9, terminal=True), node(2, 0, 0.5))
    assert chosen(Beam(width=1, children=2), made) == 2


def test_a_state_without_more_children_keeps_its_place():
    made = tree(node(0), node(1, 0, 0.9), node(2, 0, 0.5))
    made.close(1)
    assert chosen(Beam(width=1, children=2), made) is None
    assert chosen(Beam(width=2, children=2), made) == 2


def test_the_reason_is_the_value_beside_the_next_best():
    made = tree(node(0), node(1, 0, 0.4), node(2, 0, 0.5))
    reason = Beam(width=2, children=2).select(made, Random(0)).reasons[-1]
    assert (reason.node, reason.rival, reason.among) == (2, 1, 2)
    assert (reason.terms["score"], reason.rival_terms["score"]) == (0.5, 0.4)


def alike(id, parent, value, fails):
    """A node in which these tests fail."""
    return replace(node(id, parent, value), report=SuiteReport(dict.fromkeys(fails, Outcome.FAILED)))


class TestCoverage:
    def level(self):
        """Nodes 1 to 3 are near-duplicates; node 4 is worth less than they are, and different."""
        worths = {1: (0.6, "a"), 2: (0.6, "a"), 3: (0.5, "a"), 4: (0.4, "b")}
        return tree(node(0), *(alike(n, 0, *worth) for n, worth in worths.items()))

    def beam(self, **settings):
        made, taken = self.level(), []
        while (selected := chosen(Beam(children=4, depth=2, **settings), made)) is not None:
            taken.append(selected)
            made.add(node(len(made), selected))
        return list(dict.fromkeys(taken))

    def test_by_value_alone_a_beam_is_of_one_kind(self):
        assert self.beam(width=2) == [1, 2]

    def test_with_coverage_a_state_of_another_kind_takes_the_place_of_a_duplicate(self):
        assert self.beam(width=2, coverage=1.0) == [1, 4]

    def test_with_a_cost_duplicates_are_dropped_though_there_is_room(self):
        assert self.beam(width=4, coverage=1.0) == [1, 2, 3, 4]
        assert self.beam(width=4, coverage=1.0, cost=2.0) == [1, 4]

    def test_one_state_is_kept_at_any_cost(self):
        assert self.beam(width=4, cost=99.0) == [1]


@given(history=histories)
def test_a_later_session_keeps_the_same_states(history):
    search, grown = Beam(width=2, children=3, depth=4, cost=0.5, coverage=0.5), Grown()
    for change in history:
        grown.happens(*change)
        search.select(grown.tree, Random(0))
    assert search.select(grown.tree, Random(0)) == search.select(grown.again(), Random(0))


def plain(search, made):
    """The choice by a scan of all levels."""
    for depth in range(search.depth):
        level = sorted(
            (n for n in made if made.depth(n.id) == depth and not n.terminal), key=lambda n: (-n.value, n.id)
        )
        beam = [n.id for n in level[: search.width]]
        left = [n for n in beam if made.expandable(n) and made.expansions(n) < search.children]
        if left:
            return left[0] if made.in_flight == sum(made.pending_below(n) for n in beam) else None
    return None


@given(history=histories)
def test_it_chooses_what_a_scan_of_all_levels_chooses(history):
    search, grown = Beam(width=2, children=3, depth=4), Grown()
    for change in history:
        grown.happens(*change)
        assert chosen(search, grown.tree) == plain(search, grown.tree)


@pytest.mark.parametrize("setting", [{"width": 0}, {"children": 0}, {"depth": 0}, {"cost": -1}, {"coverage": -1}])
def test_a_setting_without_a_meaning_is_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        Beam(**setting)
