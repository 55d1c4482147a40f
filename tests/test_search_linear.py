"""One line of play."""

from __future__ import annotations

import pytest

from agent.search.linear import Linear
from tests.test_search import chosen, grow
from tests.trees import node, tree


def test_it_follows_its_newest_node():
    assert grow(Linear(), tree(node(0)), lambda n: 0.0, 4) == [0, 1, 2, 3]


def test_it_gives_up_after_its_attempts():
    made = tree(node(0))
    for _ in range(3):
        assert chosen(Linear(attempts=3), made) == 0
        made.fail(0)
    assert chosen(Linear(attempts=3), made) is None


def test_it_never_runs_two_expansions_at_once():
    made = tree(node(0))
    made.begin(0)
    assert chosen(Linear(), made) is None


def test_where_nothing_is_left_to_do_it_goes_back_to_the_nearest_state_above_where_that_is_wanted():
    made = tree(node(0), node(1, 0), node(2, 0), node(3, 2))
    back = Linear(backtrack=True)
    assert chosen(back, made) == 3
    for closed, above in ((3, 2), (2, 0), (0, None)):
        made.close(closed)
        assert chosen(Linear(), made) is None
        assert chosen(back, made) == above


def test_no_state_that_it_goes_back_to_is_tried_for_ever():
    made, back = tree(node(0), node(1, 0), node(2, 0)), Linear(attempts=2, backtrack=True)
    for end in ("failed", "known"):
        assert chosen(back, made) == 2
        made.fail(2) if end == "failed" else made.merge(2, 1)
    made.merge(0, 1)
    assert chosen(back, made) == 0
    made.add(node(3, 0))
    made.close(3)
    for _ in range(2):
        assert chosen(back, made) == 0
        made.merge(0, 1)
    assert chosen(back, made) is None


def test_a_line_of_no_attempts_is_refused():
    with pytest.raises(ValueError, match="attempts=0"):
        Linear(attempts=0)
