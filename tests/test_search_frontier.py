"""Of a frontier few states are kept, and different ones (ETS)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import Edit, Write
from agent.budget import Budget
from agent.config import load
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.policy import Proposal
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.search.registry import SEARCHES
from agent.search.support.frontier import EXACT, Frontier, keep
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import BUG, means, task
from tests.trees import node, tree


def state(id, parent, value, *, fails=(), edits=()):
    """A node in which these tests fail, after these files were edited."""
    steps = (Step(tuple(Edit(path, "a", "b") for path in edits), ()),)
    report = SuiteReport(dict.fromkeys(fails, Outcome.FAILED))
    return replace(node(id, parent, value), steps=steps, report=report)


@st.composite
def instances(draw, most=EXACT):
    """Values, paths and clusters of a frontier: inner nodes have letters, states numbers."""
    count = draw(st.integers(1, most))
    values = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    paths = [{i, *draw(st.sets(st.sampled_from("abcd"), max_size=3))} for i in range(count)]
    clusters = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    weights = draw(st.tuples(st.floats(0, 3), st.floats(0, 3)))
    return values, paths, clusters, weights


def objective(instance, chosen):
    """The formula, over sets."""
    values, paths, clusters, (cost, coverage) = instance
    reward = sum(values[i] / sum(values) if sum(values) else 1 / len(values) for i in chosen)
    kept = len(set().union(*(paths[i] for i in chosen))) / len(set().union(*paths))
    return reward - cost * kept + coverage * len({clusters[i] for i in chosen}) / len(set(clusters))


def brute_force(instance, width):
    every = range(len(instance[0]))
    return max(objective(instance, c) for n in range(1, width + 1) for c in combinations(every, min(n, len(every))))


def frontier(instance):
    values, paths, clusters, weights = instance
    return Frontier.of(values, paths, clusters, *weights)


@settings(max_examples=15)
@given(instances(), st.integers(1, EXACT))
def test_a_small_frontier_is_pruned_as_well_as_brute_force_does_it(instance, width):
    best = frontier(instance).best(width)
    assert 1 <= len(best) <= width
    assert objective(instance, best) == pytest.approx(brute_force(instance, width))


@settings(max_examples=30)
@given(instances(most=6), st.integers(1, 6))
def test_beyond_the_exact_size_no_more_is_lost_than_the_stated_bound(instance, width):
    made = frontier(instance)
    relaxed, greedy = made.ignoring_paths(width), made.greedily(width)
    assert 1 <= len(greedy) <= width
    inner = set().union(*(instance[1][i] for i in relaxed)) - set(relaxed)
    best = max(objective(instance, relaxed), objective(instance, greedy))
    assert best >= brute_force(instance, width) - made.node_cost * len(inner) - 1e-9


@settings(max_examples=30)
@given(instances(most=20), st.integers(1, 20))
def test_at_least_one_state_is_kept_and_no_more_than_the_width(instance, width):
    assert 1 <= len(frontier(instance).best(width)) <= width


def test_the_objective_is_the_formula():
    """Two states with one inner node between them, of one cluster; a third beside them, of another."""
    made = Frontier.of([0.6, 0.2, 0.2], ["ra", "rb", "c"], ["x", "x", "y"], cost=0.4, coverage=0.5)
    assert made.objective([0, 1]) == pytest.approx(0.8 - 0.4 * 3 / 4 + 0.5 * 1 / 2)
    assert made.objective([0, 2]) == pytest.approx(0.8 - 0.4 * 3 / 4 + 0.5 * 2 / 2)


def test_of_two_near_duplicates_one_is_dropped_and_a_distinct_state_is_kept():
    """Nodes 1 and 2 fail in the same test after edits of the same file; node 3 is worth less, and is like no other."""
    made = tree(
        state(0, None, 0.1),
        state(1, 0, 0.5, fails=["t::a"], edits=["a.py"]),
        state(2, 0, 0.5, fails=["t::a"], edits=["a.py"]),
        state(3, 0, 0.4, fails=["t::b"], edits=["a.py"]),
    )
    assert keep(made, [1, 2, 3], width=2) == (1, 3)
    assert keep(made, [1, 2, 3], width=3, cost=2.0) == (1, 3)
    assert keep(made, [1, 2, 3], width=2, coverage=0.0) == (1, 2)


def test_states_differ_by_the_files_that_were_edited():
    made = tree(state(0, None, 0.1), *(state(i, 0, 0.5, edits=[f]) for i, f in enumerate("aab", start=1)))
    assert keep(made, [1, 2, 3], width=2) == (1, 3)


def test_a_flaky_test_makes_no_difference():
    root = replace(node(0), report=SuiteReport({"t::x": Outcome.PASSED}, flaky=("t::x",)))
    made = tree(root, state(1, 0, 0.5), state(2, 0, 0.5, fails=["t::x"]), state(3, 0, 0.4, fails=["t::y"]))
    assert keep(made, [1, 2, 3], width=2) == (1, 3)


def test_branches_that_share_their_prefix_are_cheaper_to_keep():
    """Nodes 3 and 4 have their way to the root in common; node 6 is as good, and far from both."""
    made = tree(node(0), node(1, 0), node(2, 1), node(3, 2, 0.5), node(4, 2, 0.5), node(5, 0), node(6, 5, 0.5))
    assert keep(made, [3, 4, 6], width=2, coverage=0.0) == (3, 4)


def test_nothing_is_kept_of_nothing():
    assert keep(tree(node(0)), [], width=3) == ()


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_goes_on_from_a_state_of_another_kind(tmp_path, namespaces):
    """The third edit of the base breaks a test that passed: by value it is the last of the three."""

    edits = [Edit("means.py", BUG, BUG.replace("0", bound)) for bound in ("-1", "-2", "4")]

    def answer(position):
        proposals = edits if position.node.id == 0 else [Write("note", str(position.node.id))]
        return Proposal(tuple(proposals[position.index : position.index + 1]))

    with Run.open(tmp_path / "run") as run:
        provider = namespace_provider(namespaces / "coverage")
        settings = load(
            overrides=["search.coverage=1.0", "search.width=2", "search.depth=2"], flags={"search.name": "beam"}
        )
        search = SEARCHES[settings.search.name](**settings.search.options)
        parts = Components(provider, Scripted(answer), search, PassingTests(), Budget(), baseline_runs=1)
        solve(task(means(tmp_path / "repo")), parts, run)
        provider.close()
        assert {n.parents for n in run.tree if run.tree.depth(n.id) == 2} == {(1,), (3,)}
