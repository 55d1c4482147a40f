"""Go-Explore returns to interesting states: kinds of states that are rare, good and little tried."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from random import Random

import pytest
from hypothesis import given, settings

from agent.measure import Outcome, SuiteReport
from agent.run.tree.evaluation import Evaluation
from agent.search.best_first import BestFirst
from agent.search.go_explore import GoExplore
from tests.test_search import chosen
from tests.trees import Grown, histories, node, tree


def state(id, parent, fails, value=0.5, **parts):
    """A node in which these tests fail."""
    report = SuiteReport(dict.fromkeys(fails, Outcome.FAILED))
    return replace(node(id, parent), report=report, evaluation=Evaluation(value, solved=value == 1.0, parts=parts))


def reason_of(search, made):
    return search.select(made, Random(0)).reasons[-1]


class TestCells:
    def test_states_in_which_the_same_tests_fail_are_one_cell(self):
        made = tree(state(0, None, "ab"), state(1, 0, "a"), state(2, 0, "a"), state(3, 0, "b"))
        assert reason_of(GoExplore(), made).among == 3

    def test_how_a_test_fails_and_what_a_state_is_worth_make_a_difference(self):
        made = tree(state(0, None, "a"), state(1, 0, "a", value=0.7), state(2, 0, "a", value=0.702))
        made.add(replace(state(3, 0, ""), report=SuiteReport({"a": Outcome.ERROR})))
        assert reason_of(GoExplore(), made).among == 3

    @pytest.mark.parametrize("shorter_first", [True, False])
    def test_the_shorter_path_is_kept_for_a_cell_that_is_seen_twice(self, shorter_first):
        """Nodes below 1 fail in x, as one below the root does that is found before or after them."""
        near = state(2 if shorter_first else 4, 0, "x")
        far = [state(3, 1, "y"), state(4 if shorter_first else 2, 1, "x")]
        made = tree(state(0, None, "ab"), state(1, 0, "a"), *sorted([near, *far], key=lambda n: n.id))
        for closed in (0, 1, 3):
            made.close(closed)
        assert chosen(GoExplore(), made) == near.id
        made.close(near.id)
        assert chosen(GoExplore(), made) == far[-1].id


class TestScore:
    def test_it_is_the_formula(self):
        """Two states alike of value 0.25, expanded three times together, one of them in flight."""
        made = tree(state(0, None, "a"), state(1, 0, "b", 0.25, interest=0.5), state(2, 0, "b", 0.25))
        made.close(0)
        made.fail(1)
        made.fail(2)
        made.begin(1)
        reason = reason_of(GoExplore(novelty=3, value=2, interest=1), made)
        score = (3 / sqrt(2) + 2 * 0.25 + 1 * 0.5) / sqrt(1 + 3)
        assert reason.terms == pytest.approx({"score": score, "seen": 2, "tried": 3, "value": 0.25, "interest": 0.5})

    def test_of_two_kinds_the_rarer_is_returned_to(self):
        made = tree(state(0, None, "ab"), state(1, 0, "a"), state(2, 0, "a"), state(3, 0, "b"))
        made.close(0)
        assert chosen(GoExplore(), made) == 3

    def test_what_a_judge_called_interesting_is_returned_to(self):
        made = tree(state(0, None, "ab"), state(1, 0, "a"), state(2, 0, "b", interest=0.9), state(3, 0, "c"))
        assert chosen(GoExplore(), made) == 2
        assert chosen(GoExplore(interest=0), made) == 1

    def test_workers_return_to_different_states(self):
        made = tree(state(0, None, "ab"), state(1, 0, "a"), state(2, 0, "b"), state(3, 0, "c"))
        made.close(0)
        taken = []
        for _ in range(3):
            taken.append(chosen(GoExplore(), made))
            made.begin(taken[-1])
        assert taken == [1, 2, 3]

    def test_a_choice_says_what_it_was_preferred_to(self):
        made = tree(state(0, None, "ab", 0.1), state(1, 0, "a"), state(2, 0, "b", 0.3))
        reason = reason_of(GoExplore(), made)
        assert (reason.node, reason.rival, reason.rival_terms["value"]) == (1, 2, 0.3)


class TestAModel:
    def chooses(self, made, id, parent, fails, digest, value=0.5, interest=0.5):
        found = state(id, parent, fails, value, interest=interest)
        made.add(replace(found, evaluation=replace(found.evaluation, return_to=digest)))

    def test_chooses_the_state_to_return_to_until_it_was_gone_on_from(self):
        made = tree(state(0, None, "ab", 0.1), state(1, 0, "a", 0.2), state(2, 0, "b", 0.3))
        self.chooses(made, 3, 0, "c", made[1].state_hash)
        assert chosen(GoExplore(), made) == 1
        assert reason_of(GoExplore(), made).terms["chosen"] == 1
        made.begin(1)
        assert chosen(GoExplore(), made) == 3
        made.end(1)
        made.add(state(4, 1, "d", 0.0))
        assert chosen(GoExplore(), made) == 3

    def test_chooses_in_vain_what_is_closed_or_not_in_the_tree(self):
        made = tree(state(0, None, "ab", 0.1), state(1, 0, "a", 0.2))
        self.chooses(made, 2, 0, "c", made[1].state_hash)
        made.close(1)
        assert chosen(GoExplore(), made) == 2
        self.chooses(made, 3, 0, "d", "elsewhere")
        assert chosen(GoExplore(), made) == 2

    def test_a_state_without_interest_is_not_returned_to(self):
        made = tree(state(0, None, "ab", 0.1))
        self.chooses(made, 1, 0, "a", "elsewhere", value=0.9, interest=0)
        self.chooses(made, 2, 0, "b", "elsewhere", value=0.2)
        made.close(0)
        assert chosen(GoExplore(), made) == 2
        made.close(2)
        assert chosen(GoExplore(), made) is None


class Maze:
    """The third child of each room but the lure is the next room, and each is worth a little less than the one before;
    the exit is behind the last. The first child of the root is the lure, worth far more; below it nothing changes."""

    rooms = 5

    def __init__(self):
        self.tree = tree(state(0, None, "0", 0.3))
        self.room = {0: 0}

    def expand(self, at):
        index, room = self.tree.expansions(at), self.room[at]
        if room == "lure" or (room == 0 and index == 0):
            led_to, value = "lure", 0.6
        elif index == 2:
            led_to = room + 1
            value = 1.0 if led_to == self.rooms else 0.3 - 0.05 * led_to
        else:
            led_to, value = room, self.tree[at].value
        self.room[len(self.tree)] = led_to
        self.tree.add(state(len(self.tree), at, [f"door {led_to}"], value))

    def solved_within(self, search, steps):
        for step in range(steps):
            if self.tree.solved:
                break
            self.expand(chosen(search, self.tree, step))
        return bool(self.tree.solved)


def test_it_leaves_a_maze_in_which_the_greedy_search_stays():
    assert Maze().solved_within(GoExplore(), 100)
    assert not Maze().solved_within(BestFirst(), 400)


def test_the_way_out_of_the_maze_has_no_step_too_many():
    maze = Maze()
    maze.solved_within(GoExplore(), 100)
    assert maze.tree.depth(maze.tree.solved[0]) == Maze.rooms


@settings(max_examples=30)
@given(history=histories)
def test_a_later_session_chooses_the_same(history):
    search, grown = GoExplore(), Grown()
    for change in history:
        grown.happens(*change)
        search.select(grown.tree, Random(0))
    assert search.select(grown.tree, Random(0)) == search.select(grown.again(), Random(0))


@pytest.mark.parametrize("setting", [{"novelty": -1}, {"value": float("nan")}, {"interest": -0.1}])
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        GoExplore(**setting)
