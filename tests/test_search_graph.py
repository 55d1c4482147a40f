"""Graph search: branches that complete each other are merged once neither gets on alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Submit
from agent.budget import Budget
from agent.engine.components import Components
from agent.engine.selection import choose
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.policy import Position, Proposal
from agent.run.commands import Order, Steering
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.search.graph import Graph, Heads
from agent.search.support.repairs import Repairs
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.halves import HIGH, LOW, halves
from tests.policies import Scripted
from tests.projects import quick_task
from tests.trees import node, tree

GOALS = ("a", "b", "c")


def passing(id, parent, *passed, broken=False, value=None, **given):
    """A node whose state passes these of the goals; the test `old` passes in the base state."""
    outcomes = {t: Outcome.PASSED if t in passed else Outcome.FAILED for t in GOALS}
    outcomes["old"] = Outcome.FAILED if broken else Outcome.PASSED
    worth = 0.1 + 0.3 * len(passed) if value is None else value
    return replace(node(id, parent, min(worth, 0.99), **given), report=SuiteReport(outcomes))


def chosen(made, **settings):
    """What is merged with what, None when nothing is."""
    choice = Graph(**{"stagnation": 0} | settings).select(made, Random(0))
    return None if choice is None or choice.act != "fuse" else (choice.node, choice.other)


def two_halves():
    return tree(passing(0, None), passing(1, 0, "a"), passing(2, 0, "b"))


def test_branches_that_complete_each_other_are_merged_the_older_first_among_equals():
    assert chosen(two_halves()) == (1, 2)


def test_the_more_valuable_branch_takes_the_other_in():
    assert chosen(tree(passing(0, None), passing(1, 0, "a"), passing(2, 0, "b", "c"))) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        passing(2, 0),
        passing(2, 0, "a"),
        passing(2, 0, "b", broken=True),
        replace(passing(2, 0, "b"), report=SuiteReport(valid=False)),
        passing(2, 1, "b"),
    ],
    ids=["repairs nothing", "repairs the same", "breaks a test", "no valid report", "comes from the first"],
)
def test_what_adds_nothing_is_not_merged(other):
    assert chosen(tree(passing(0, None), passing(1, 0, "a"), other)) is None


def test_a_pair_is_merged_once_whatever_comes_of_it():
    succeeded, failed, known, begun = (two_halves() for _ in range(4))
    succeeded.add(replace(passing(3, 1, "c"), parents=(1, 2), kind="fuse"))
    failed.fail(1, "conflict", "fuse", 2)
    known.merge(1, 2, act="fuse", other=2)
    begun.begin(2, "fuse", 1)
    for made in (failed, known, begun):
        assert chosen(made) is None
    assert chosen(succeeded) != (1, 2)


def test_below_a_pin_a_pair_is_merged_once_too():
    """Whether it was begun before the pin or below it, by this session or by an earlier one."""
    made = tree(passing(0, None), passing(1, 0), *(passing(n, 1, "ab"[n % 2]) for n in (2, 3, 4)))
    steering = Steering()
    steering.give(Order("pin", 1), made, 0)
    made.fail(2, "conflict", "fuse", 3)
    merged = []
    while (choice := choose(made, steering, Graph(), Random(0))).act == "fuse":
        merged.append((choice.node, choice.other))
        made.begin(choice.node, "fuse", choice.other)
        made.fail(choice.node, "conflict", "fuse", choice.other)
        made.end(choice.node, "fuse", choice.other)
    assert merged == [(3, 4)]


def test_a_merge_promises_more_than_any_state_has():
    """Node 3 is the merge of 1 and 2; only what has `c` adds something to it."""
    made = two_halves()
    made.add(replace(passing(3, 1, "a", "b"), parents=(1, 2)))
    made.add(passing(4, 0, "b"))
    assert chosen(made) is None
    made.add(passing(5, 0, "c"))
    assert chosen(made) == (3, 5)


def test_the_pair_that_repairs_most_together_comes_first():
    made = tree(passing(0, None), passing(1, 0, "a"), passing(2, 0, "b"), passing(3, 0, "b", "c"))
    assert chosen(made) == (3, 1)


def test_a_branch_is_left_alone_while_it_gets_on():
    made = two_halves()
    assert chosen(made, stagnation=2) is None
    for parent in (1, 1, 2, 2):
        made.add(passing(len(made), parent))
    assert chosen(made, stagnation=2) == (1, 2)
    made.add(passing(7, 2, "b", value=0.5))
    assert chosen(made, stagnation=2) is None


def test_a_branch_in_which_nothing_can_be_expanded_is_stagnant():
    made = tree(passing(0, None), passing(1, 0, "a", terminal=True), passing(2, 0, "b"))
    assert chosen(made, stagnation=9) is None
    made.close(2)
    assert chosen(made, stagnation=9) == (1, 2)


def test_what_was_pruned_is_not_merged():
    made = two_halves()
    assert chosen(made) == (1, 2)
    made.prune(2)
    assert chosen(made) is None


def test_only_so_many_states_that_repair_the_same_are_tried():
    made = tree(passing(0, None), *(passing(i, 0, "a") for i in range(1, 6)), passing(6, 0, "b"))
    merged = []
    while pair := chosen(made, candidates=3):
        merged.append(pair)
        made.fail(pair[0], "conflict", "fuse", pair[1])
    assert merged == [(1, 6), (2, 6), (3, 6)]


def test_by_partial_progress_the_best_states_of_stagnant_branches_are_merged_without_a_test_that_tells_them_apart():
    """1 and 2 are one branch, 3 another; 4 is no better than the base state, 5 was pruned."""
    better = passing(1, 0, value=0.3), passing(2, 1, value=0.5), passing(3, 0, value=0.4, terminal=True)
    made = tree(passing(0, None), *better, passing(4, 0), passing(5, 0, value=0.8))
    made.prune(5)
    assert chosen(made) is None
    assert chosen(made, partial=True, stagnation=1) is None, "2 may still get on"
    made.close(2)
    assert chosen(made, partial=True, stagnation=1) == (2, 3)
    made.add(replace(passing(6, 2, value=0.6), parents=(2, 3)))
    assert chosen(made, partial=True) is None


def test_a_solved_state_is_merged_with_nothing_by_partial_progress():
    done = replace(passing(2, 0), evaluation=Evaluation(1.0, solved=True))
    assert chosen(tree(passing(0, None), passing(1, 0, value=0.4), done), partial=True) is None


def references(made, **settings):
    """The node that is expanded, and the states of other branches that its policy is shown."""
    choice = Graph(**settings).select(made, Random(0))
    return choice.node, choice.references


def test_a_stagnant_branch_is_shown_the_best_of_the_others():
    first, others = passing(1, 0, value=0.3), (passing(2, 0, value=0.5), passing(3, 2, value=0.9), passing(4, 0))
    made = tree(passing(0, None), first, *others)
    for closed in (0, 2, 3, 4):
        made.close(closed)
    assert references(made, references=2, stagnation=1) == (1, ()), "1 may still get on"
    assert references(made, references=2) == (1, (3,))
    assert references(made) == (1, ())


def test_at_the_base_state_all_branches_are_shown_the_best_first():
    made = tree(passing(0, None), passing(1, 0, value=0.3, terminal=True), passing(2, 0, value=0.5, terminal=True))
    assert references(made, references=2) == (0, (2, 1))
    assert references(made, references=1) == (0, (2,))


def test_says_what_a_merge_promises_and_what_the_next_one_does():
    made = tree(passing(0, None), passing(1, 0, "a"), passing(2, 0, "b"), passing(3, 0, "b", "c"), passing(4, 0, "a"))
    (reason,) = Graph(stagnation=0).select(made, Random(0)).reasons
    assert (reason.node, reason.among, reason.rival) == (3, 2, 3)
    assert reason.terms == {"score": 3, "value": pytest.approx(1.1), "with": 1}
    assert reason.rival_terms["with"] == 4


def test_goes_on_as_mcts_where_there_is_nothing_to_merge():
    assert Graph().select(tree(node(0)), Random(0)).node == 0


shapes = st.lists(st.tuples(st.integers(0, 30), st.sets(st.sampled_from(GOALS)), st.booleans()), max_size=20)


@given(shapes, st.sets(st.integers(1, 20), max_size=3))
def test_the_best_state_of_a_branch_is_the_first_of_highest_value_that_is_not_pruned(shape, pruned):
    made = tree(passing(0, None, value=0.1))
    kept = made.view("kept", Heads)
    for parent, passed, _ in shape:
        made.add(passing(len(made), parent % len(made), value=len(passed) / 10))
    for each in pruned:
        if each < len(made):
            made.prune(each)
    found = dict[int, int]()
    better = [each for each in made if each.value > 0.1 and not made.pruned(each.id)]
    for each in sorted(better, key=lambda each: (-each.value, each.id)):
        found.setdefault(made.path(each.id)[1].id, each.id)
    assert list(kept.by_branch().items()) == list(found.items())


@given(shapes, st.sets(st.integers(1, 20), max_size=3))
def test_what_is_known_of_repairs_is_the_same_when_it_is_looked_at_late(shape, pruned):
    made = tree(passing(0, None))
    kept = made.view("kept", Repairs)
    for parent, passed, broken in shape:
        made.add(passing(len(made), parent % len(made), *passed, broken=broken))
    for each in pruned:
        if each < len(made):
            made.prune(each)
    fresh = made.view("fresh", Repairs)
    assert kept.most == fresh.most
    assert [kept.nodes(tests) for tests in kept.most] == [fresh.nodes(tests) for tests in fresh.most]


@pytest.mark.parametrize("wrong", [{"stagnation": -1}, {"candidates": 0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Graph(**wrong)


@pytest.mark.slow
@pytest.mark.namespace
def test_two_halves_of_a_repair_are_merged_and_pass_both_tests(tmp_path: Path) -> None:
    """Each branch fixes one of two failing tests, and its policy submits."""

    def answer(position: Position) -> Proposal:
        if len(position.path) > 1 or position.index > 1:
            return Proposal(())
        return Proposal(((LOW, HIGH)[position.index], Submit()))

    provider = namespace_provider(tmp_path / "run" / "store")
    with Run.open(tmp_path / "run") as run:
        parts = Components(provider, Scripted(answer), Graph(), PassingTests(), Budget(max_nodes=9), baseline_runs=1)
        assert solve(quick_task(halves(tmp_path / "repo")), parts, run).status == "solved"
    provider.close()
    assert [n.parents for n in run.tree] == [(), (0,), (0,), (1, 2)]
    assert [n.terminal for n in run.tree] == [False, True, True, True]
