"""What a search sees in a later round: the base state as if nothing had been tried there, and what was made since."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agent.engine.completion import FinishedRollouts
from agent.engine.selection import choose
from agent.run.commands import Order, Steering
from agent.run.events import Added, Merged, Round
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.run.tree.part import RoundStart, TreePart
from agent.search.best_of_n import BestOfN
from agent.search.linear import Linear
from tests.test_steering import CHANGES_BY_NAME, facts
from tests.test_tree import trees
from tests.trees import node, tree

AT_ONE = ["add", "fail", "begin", "measure", "measured", "leave", "close"]
changes = st.lists(st.tuples(st.sampled_from(AT_ONE), st.integers(0, 30), st.integers(0, 50)), max_size=12)


def fresh(base, made):
    """A tree of the base state alone, at which nothing was done."""
    alone = tree(base)
    if not made.expandable(0):
        alone.close(0)
    if made.exhausted_for(0, "b"):
        alone.exhaust_for(0, "b")
    return alone


@given(made=trees(), before=changes, later=changes, elsewhere=st.data())
def test_a_round_says_what_a_tree_would_say_in_which_nothing_was_done_before(made, before, later, elsewhere):
    for change, at, other in before:
        if change not in ("begin", "measure"):
            CHANGES_BY_NAME[change](made, at % len(made), other)
    since, alone = RoundStart.now(made, 0), fresh(made[0], made)
    kept = made.view("kept", lambda whole: TreePart(whole, 0, since))
    members = [0]
    for change, at, other in later:
        inner = at % len(members)
        CHANGES_BY_NAME[change](made, members[inner], other)
        CHANGES_BY_NAME[change](alone, inner, other)
        if change == "add":
            members.append(len(made) - 1)
            alone._nodes[-1] = replace(alone[len(alone) - 1], snapshot=made[members[-1]].snapshot)
        if since.nodes > 1:
            old = elsewhere.draw(st.integers(1, since.nodes - 1))
            CHANGES_BY_NAME[elsewhere.draw(st.sampled_from(AT_ONE[1:]))](made, old, other)
    own = range(len(alone))
    expected = [facts(alone, each, own, own) for each in own]
    for part in (kept, made.view("late", lambda whole: TreePart(whole, 0, since))):
        assert [facts(part, each, own, own) for each in own] == expected
        assert (len(part), part.in_flight, part.best().id) == (len(alone), alone.in_flight, alone.best().id)
        assert part.ended_expansions == alone.ended_expansions


def in_second_wave(made):
    since = RoundStart.now(made, 0)
    return made.view("wave", lambda whole: TreePart(whole, 0, since))


def test_a_search_begins_anew_although_earlier_rounds_have_used_it_up():
    made = tree(node(0), node(1, 0, terminal=True), node(2, 0, terminal=True))
    search = BestOfN(n=2)
    assert search.select(made, Random(0)) is None
    wave = in_second_wave(made)
    assert choose(made, Steering(), search, Random(0), visible=wave).node == 0
    made.add(node(3, 0))
    choice = choose(made, Steering(), search, Random(0), visible=wave)
    assert (choice.node, choice.reasons[0].node) == (3, 3)


def test_a_pin_goes_before_the_round_and_one_on_the_base_state_changes_nothing():
    made = tree(node(0), node(1, 0), node(2, 1))
    wave, steering = in_second_wave(made), Steering()
    steering.give(Order("pin", 0), made, 0)
    assert choose(made, steering, Linear(), Random(0), visible=wave).node == 0
    steering.give(Order("pin", 1), made, 0)
    assert choose(made, steering, Linear(), Random(0), visible=wave).node == 2


def test_what_a_person_forks_of_an_earlier_round_is_gone_on_with_beside_what_is_begun_anew():
    made = tree(node(0), node(1, 0), node(2, 1, terminal=True))
    wave, steering, search = in_second_wave(made), Steering(), BestOfN(n=1)
    steering.give(Order("fork", 1), made, 0)
    choice = choose(made, steering, search, Random(0), visible=wave)
    assert choice.node == 1
    made.begin(1)
    assert (wave.in_flight, wave.pending_below(0), made.in_flight) == (0, 0, 1)
    made.end(1)
    made.add(node(3, 1))
    steering.use(choice)
    assert choose(made, steering, search, Random(0), visible=wave).node == 3
    made.begin(3)
    assert (wave.in_flight, wave.open_below(0)) == (1, 2)
    made.end(3)
    made.add(node(4, 3, terminal=True))
    assert [node.id for node in wave.path(2)] == [0, 1, 2]
    assert wave.view(FinishedRollouts, FinishedRollouts).count == 1
    assert (wave.expansions(0), wave.attempts(0), wave.open_below(0)) == (0, (), 2)
    assert choose(made, steering, search, Random(0), visible=wave).node == 0


class TestFinished:
    def test_a_rollout_is_finished_where_nothing_is_left_to_do(self):
        made = tree(node(0), node(1, 0, terminal=True), node(2, 0), node(3, 2), node(4, 0))
        finished = made.view(FinishedRollouts, FinishedRollouts)
        assert finished.count == 1
        made.close(3)
        assert finished.count == 2
        made.close(2)
        assert finished.count == 2
        made.begin(4)
        made.close(4)
        assert finished.count == 2
        made.end(4)
        assert finished.count == 3

    def test_one_that_a_critic_accepts_is_until_it_is_gone_on_with(self):
        made = tree(node(0))
        finished = made.view(FinishedRollouts, FinishedRollouts)
        accepted = replace(node(1, 0).evaluation, parts={"accept": 1.0})
        made.add(replace(node(1, 0), evaluation=accepted))
        assert finished.count == 1
        made.add(node(2, 1))
        assert finished.count == 0

    def test_one_that_a_critic_accepts_is_not_as_long_as_its_conversation_continues(self):
        made = tree(node(0))
        finished = made.view(FinishedRollouts, FinishedRollouts)
        accepted = replace(node(1, 0).evaluation, parts={"accept": 1.0})
        made.add(replace(node(1, 0, steps=(Step((), (), "said"),)), evaluation=accepted))
        assert finished.count == 0
        made.add(node(2, 1, terminal=True))
        assert finished.count == 1

    def test_of_single_edits_only_one_that_solves_the_task_is(self):
        made = tree(node(0), node(1, 0, terminal=True), node(2, 0))
        finished = made.view("solved", lambda tree: FinishedRollouts(tree, solved_only=True))
        made.close(2)
        assert finished.count == 0
        made.add(replace(node(3, 0, terminal=True), evaluation=replace(node(3).evaluation, value=1.0, solved=True)))
        assert finished.count == 1

    def test_one_that_comes_to_a_state_of_an_earlier_round_is_and_one_that_repeats_its_own_round_is_not(self):
        made = tree(node(0), node(1, 0))
        wave = in_second_wave(made)
        finished = wave.view(FinishedRollouts, FinishedRollouts)
        made.add(node(2, 0))
        made.merge(2, 1)
        assert finished.count == 1
        made.merge(0, 1)
        assert finished.count == 2
        made.merge(0, 2)
        assert finished.count == 2


def test_a_later_session_sees_the_same_round(tmp_path):
    def sit():
        return (
            len(run.round_tree),
            run.round_tree.attempts(0),
            run.attempts(0),
            [n.id for n in run.children(0)],
            run.briefing,
        )

    with Run.open(tmp_path) as run:
        assert run.round_tree is None
        for event in (Added(node(0)), Added(node(1, 0)), Round(2, 2), Added(node(2, 0)), Merged(0, 1)):
            run.record(event)
        first = sit()
    with Run.open(tmp_path) as run:
        assert sit() == first
        assert first[0] == 2
        assert [attempt.child for attempt in run.attempts(0)] == [2, 1]
        assert first[3] == [2]


def test_what_a_round_saw_is_no_longer_kept_up_to_date_once_another_has_begun(tmp_path):
    with Run.open(tmp_path) as run:
        for event in (Added(node(0)), Added(node(1, 0)), Round(2, 2)):
            run.record(event)
        second = run.round_tree
        for event in (Added(node(2, 0)), Round(3, 3), Added(node(3, 0)), Added(node(4, 0))):
            run.record(event)
        assert (len(second), len(run.round_tree)) == (2, 3)
