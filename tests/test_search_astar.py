"""A* finds the cheapest solution, pop by pop as in the textbook, whenever its estimate is admissible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import RunTests, View
from agent.budget import Usage
from agent.measure import Outcome, SuiteReport
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Step
from agent.search.astar import AStar
from tests.test_search import chosen
from tests.trees import Grown, histories, node, tree

REST = 128
TEXTBOOK = AStar(edit=0, tokens=1, rest=REST, fatigue=0)
"""An edge costs what the tokens on it say, and `h` is what the value says."""


@dataclass(frozen=True)
class World:
    """A tree that a policy proposes child by child. States have numbers, the root is 0."""

    children: dict[int, tuple[int, ...]]
    costs: dict[int, int]
    """Of coming to a state."""
    h: dict[int, float]
    goals: frozenset[int]

    def left(self, state):
        """What the cheapest way to a goal costs."""
        if state in self.goals:
            return 0
        return min((self.costs[child] + self.left(child) for child in self.children.get(state, ())), default=inf)

    def node(self, id, state, parent):
        """The state as a node of a tree."""
        solved = state in self.goals
        return replace(
            node(id, parent, terminal=solved),
            steps=(Step((), (), usage=Usage(tokens_in=1000 * self.costs.get(state, 0))),),
            evaluation=Evaluation(1.0 if solved else 1 - self.h[state] / REST, solved=solved),
        )


def explore(world, search):
    """What A* expands, in order, and the cost of the best solution when it is proven to be the cheapest."""
    made, states, order, best = tree(world.node(0, 0, None)), [0], [], (inf, 0)
    while choice := search.select(made, Random(0)):
        if (-choice.reasons[-1].terms["score"], choice.node) > best:
            break
        state = states[choice.node]
        if state not in order:
            order.append(state)
        proposals, index = world.children.get(state, ()), made.expansions(choice.node)
        if index == len(proposals):
            made.close(choice.node)
            continue
        child = world.node(len(made), proposals[index], choice.node)
        made.add(child)
        states.append(proposals[index])
        if child.evaluation.solved:
            best = min(best, (sum(world.costs[states[each.id]] for each in made.path(child.id)[1:]), child.id))
    return order, best[0]


def textbook(world):
    """A*: pop the lowest f, the older among equals, and push all its children."""
    heap, order, pushed = [(world.h[0], 0, 0, 0)], [], 1
    while heap:
        _, _, g, state = heappop(heap)
        if state in world.goals:
            return order, g
        order.append(state)
        for child in world.children.get(state, ()):
            cost = g + world.costs[child]
            heappush(heap, (cost + world.h[child], pushed, cost, child))
            pushed += 1
    return order, inf


FX = World(
    children={0: (1, 2, 3), 1: (4, 5), 2: (6, 7), 3: (8,), 6: (9,), 7: (10,), 8: (11, 12)},
    costs={1: 2, 2: 4, 3: 9, 4: 9, 5: 9, 6: 3, 7: 5, 8: 1, 9: 8, 10: 3, 11: 1, 12: 1},
    h={0: 8, 1: 6, 2: 7, 3: 2, 4: 9, 5: 9, 6: 5, 7: 3, 8: 1, 9: 9, 12: 9},
    goals=frozenset({10, 11}),
)
"""f: 0 is 8; 1 is 8, 2 is 11, 3 is 11; 4 and 5 are 20; 6 is 12, 7 is 12; 8 is 11; 9 is 24; 10 is 12, 11 is 11, 12 is
20."""


@st.composite
def worlds(draw, consistent=False):
    """A tree with costs of 1 to 9 and an admissible h; it can be a share of what is left, which makes it consistent."""
    size = draw(st.integers(2, 20))
    parents = {state: draw(st.integers(0, state - 1)) for state in range(1, size)}
    goals = draw(st.frozensets(st.integers(1, size - 1), max_size=4))
    children = {at: tuple(c for c, p in parents.items() if p == at) for at in range(size) if at not in goals}
    bare = World(children, {state: draw(st.integers(1, 9)) for state in parents}, {}, goals)
    share = draw(st.sampled_from([0.0, 0.5, 1.0]))
    for state in range(size):
        left = bare.left(state)
        if consistent:
            above = bare.h[parents[state]] - bare.costs[state] if state else 0
            bare.h[state] = max(0, above) if left == inf else share * left
        else:
            bare.h[state] = draw(st.integers(0, min(left, REST - 1)))
    return bare


def test_states_are_expanded_in_the_order_computed_by_hand():
    assert explore(FX, TEXTBOOK) == ([0, 1, 2, 3, 8], 11)


def test_fewer_states_are_expanded_than_breadth_first():
    """With costs of 1 and no estimate A* goes level by level, through all that is no goal."""
    order, _ = explore(FX, AStar(edit=1, rest=0, fatigue=0))
    assert order == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12]
    assert len(explore(FX, TEXTBOOK)[0]) == 5


@settings(max_examples=40)
@given(worlds(consistent=True))
def test_states_are_expanded_in_the_order_of_the_textbook(world):
    assert explore(world, TEXTBOOK) == textbook(world)


@settings(max_examples=40)
@given(worlds())
def test_with_an_admissible_estimate_the_cheapest_solution_is_found(world):
    assert explore(world, TEXTBOOK)[1] == world.left(0)


@settings(max_examples=40)
@given(worlds())
def test_the_least_estimate_is_admissible(world):
    """What edges cost in tokens, they cost in edits: each is one, of 1."""
    even = replace(world, costs=dict.fromkeys(world.costs, 1))
    assert explore(even, AStar(edit=1, estimate="least", fatigue=0))[1] == even.left(0)


def test_an_estimate_that_says_too_much_may_miss_the_cheapest_solution():
    """The way over 2 costs 2, that over 1 costs 5; at 2 it looks as if 9 were left."""
    world = World({0: (1, 2), 1: (3,), 2: (4,)}, {1: 4, 2: 1, 3: 1, 4: 1}, {0: 0, 1: 1, 2: 9}, frozenset({3, 4}))
    assert explore(world, TEXTBOOK)[1] == 5
    assert explore(replace(world, h={0: 0, 1: 1, 2: 1}), TEXTBOOK)[1] == 2


class TestCosts:
    def cost(self, **weights):
        """Of a node with two turns, a run of the tests that the policy asked for, and two failed tests."""
        steps = (
            Step((RunTests(), View("a")), (), usage=Usage(tokens_in=1500, tokens_out=500)),
            Step((View("b"),), (), usage=Usage(tokens_in=1000)),
        )
        outcomes = {"a": Outcome.FAILED, "b": Outcome.ERROR, "c": Outcome.PASSED}
        made = replace(node(1, 0), steps=steps, report=SuiteReport(outcomes, duration_s=2.5))
        return AStar(**{"edit": 0, **weights}).cost(made)

    @pytest.mark.parametrize(
        ("weight", "units"), [("edit", 1), ("tokens", 3), ("runs", 2), ("seconds", 2.5), ("failed", 2)]
    )
    def test_each_weight_has_its_term(self, weight, units):
        assert self.cost(**{weight: 10}) == 10 * units

    def test_terms_are_added(self):
        assert self.cost(edit=1, tokens=10, runs=100, seconds=1000, failed=10_000) == 1 + 30 + 200 + 2500 + 20_000

    def test_a_node_costs_what_all_edits_on_its_way_cost(self):
        made = tree(node(0, value=0.2), node(1, 0, 0.4), node(2, 1, 0.9))
        terms = AStar(edit=2, rest=10).select(made, Random(0)).reasons[-1].terms
        assert terms == pytest.approx({"score": -(4 + 1), "g": 4, "h": 1, "fatigue": 0})


def test_the_estimate_goes_by_value_by_progress_or_by_the_least_there_is():
    made = replace(node(0), evaluation=Evaluation(0.25, parts={"progress": 0.5}))
    assert AStar(rest=8).left(made) == 6
    assert AStar(rest=8, estimate="progress").left(made) == 4
    assert AStar(edit=3, estimate="least").left(made) == 3
    solved = replace(node(0), evaluation=Evaluation(1.0, solved=True))
    assert AStar(edit=3, estimate="least").left(solved) == 0


def test_every_expansion_makes_a_node_dearer_until_another_is_cheaper():
    """The root is at 8, its child at 8.5."""
    made = tree(node(0, value=0.0), node(1, 0, 1 / 16))
    search = AStar(rest=8, fatigue=0.2)
    order = []
    for _ in range(4):
        order.append(chosen(search, made))
        made.fail(order[-1])
    assert order == [0, 0, 1, 0]


def test_workers_part_when_one_state_is_taken():
    made = tree(node(0, value=0.0), node(1, 0, 0.1), node(2, 0, 0.1))
    search, taken = AStar(rest=10, fatigue=0.6), []
    for _ in range(5):
        taken.append(chosen(search, made))
        made.begin(taken[-1])
    assert taken == [1, 2, 1, 2, 0]


def test_a_choice_says_what_it_was_preferred_to():
    made = tree(node(0, value=0.5), node(1, 0, 0.9), node(2, 0, 0.1))
    (reason,) = AStar(rest=10, fatigue=0).select(made, Random(0)).reasons
    assert (reason.node, reason.among, reason.rival) == (1, 3, 0)
    assert reason.rival_terms == pytest.approx({"score": -5, "g": 0, "h": 5, "fatigue": 0})


@settings(max_examples=30)
@given(history=histories)
def test_a_later_session_chooses_the_same(history):
    search, grown = AStar(), Grown()
    for change in history:
        grown.happens(*change)
        search.select(grown.tree, Random(0))
    assert search.select(grown.tree, Random(0)) == search.select(grown.again(), Random(0))


@pytest.mark.parametrize("setting", [{"estimate": "none"}, {"edit": -1}, {"rest": float("nan")}, {"fatigue": -0.1}])
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        AStar(**setting)
