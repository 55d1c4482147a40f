"""Independent rollouts."""

from __future__ import annotations

import pytest

from agent.search.best_of_n import BestOfN
from tests.test_search import chosen, grow
from tests.trees import node, tree


def test_it_finishes_a_rollout_before_it_begins_the_next():
    assert grow(BestOfN(n=2, depth=2), tree(node(0)), lambda n: 0.0, 9) == [0, 1, 0, 3]


def test_it_begins_another_rollout_while_one_is_in_flight():
    made = tree(node(0), node(1, 0))
    made.begin(1)
    assert chosen(BestOfN(n=2), made) == 0


def test_a_rollout_that_leads_nowhere_new_is_finished():
    made = tree(node(0), node(1, 0))
    made.fail(1)
    assert chosen(BestOfN(n=1), made) is None
    assert chosen(BestOfN(n=2), made) == 0


def work(search, made, steps, workers, lengths):
    """Expand with some workers, first begun first ended; the k-th rollout submits when it is `lengths[k]` long."""
    begun = []
    for _ in range(steps):
        while len(begun) < workers and (selected := chosen(search, made)) is not None:
            made.begin(selected)
            begun.append(selected)
        if not begun:
            return
        parent = begun.pop(0)
        made.end(parent)
        rollout = (
            len(made.children(0)) if parent == 0 else [n.id for n in made.children(0)].index(made.path(parent)[1].id)
        )
        made.add(node(len(made), parent, 0.1, terminal=made.depth(parent) + 1 == lengths[rollout]))


class TestOverProvisioning:
    lengths = (8, 1, 2, 3, 2, 2)

    def finished(self, made):
        return sum(n.terminal for n in made)

    def test_the_search_ends_with_the_first_n_and_the_longest_stays_open(self):
        made = tree(node(0))
        work(BestOfN(n=3, over=1, depth=9), made, 99, workers=4, lengths=self.lengths)
        assert self.finished(made) == 3
        assert len(made.children(0)) == 4
        assert len(made) < 1 + sum(self.lengths[:4])

    def test_no_more_are_begun_than_are_needed_and_over(self):
        made = tree(node(0))
        for _ in range(9):
            selected = chosen(BestOfN(n=2, over=3), made)
            if selected is not None:
                made.begin(selected)
        assert made.expansions(0) == 5

    def test_a_search_for_more_goes_on_with_the_unfinished_before_it_begins_new_ones(self):
        made = tree(node(0))
        work(BestOfN(n=3, over=1, depth=9), made, 99, workers=4, lengths=self.lengths)
        assert made.path(chosen(BestOfN(n=5, over=0, depth=9), made))[1].id == 1
        work(BestOfN(n=5, over=0, depth=9), made, 99, workers=2, lengths=self.lengths)
        assert self.finished(made) == 5
        assert len(made.children(0)) == 5

    def test_without_it_all_that_are_begun_are_finished(self):
        made = tree(node(0))
        work(BestOfN(n=4, depth=9), made, 99, workers=4, lengths=self.lengths)
        assert self.finished(made) == 4
        assert len(made) == 1 + sum(self.lengths[:4])


@pytest.mark.parametrize("name", ["n", "depth"])
def test_a_setting_without_a_meaning_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        BestOfN(**{name: 0})
