"""Clade search: what came of a state counts for more than the state itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import log2
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.measure import SuiteReport
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.search.clade import Clade
from tests.test_tree import trees
from tests.trees import node, tree

REMEASURE = ("flaky", "always", "never")


def fine_parent_of_poor_children():
    """Node 1 is worth 0.9 and its children 0.1; node 2 is worth 0.4 and its children 0.8."""
    made = tree(node(0, value=0.1), node(1, 0, 0.9), node(2, 0, 0.4))
    for i in range(3, 11):
        made.add(node(i, 1 if i % 2 else 2, 0.1 if i % 2 else 0.8))
    return made


def branches(search, made, draws=200):
    """How often a search goes below each child of the root; what it expands at the root itself counts for 0."""
    first = (search.select(made, Random(seed)).reasons[0].node for seed in range(draws))
    return Counter(first)


def test_a_clade_is_worth_what_its_descendants_are():
    made = fine_parent_of_poor_children()
    assert branches(Clade(trials=8), made)[2] > 150
    assert branches(Clade(trials=8, value="self"), made)[1] > 150


def test_the_posterior_pools_the_clade_and_counts_work_in_flight_as_failures():
    made = tree(node(0), node(1, 0, 0.5), node(2, 1, 0.25), node(3, 1, 0.0, terminal=True))
    made.begin(2)
    assert Clade(trials=2).posterior(made, 1, "clade") == (pytest.approx(1.5), pytest.approx(2 * (2.25 + 1)))
    assert Clade(trials=2).posterior(made, 1, "self") == (pytest.approx(1.0), pytest.approx(2 * (0.5 + 1)))


def test_all_that_may_win_does_now_and_then():
    even = tree(node(0), *(node(i, 0, 0.5) for i in range(1, 4)))
    assert branches(Clade(trials=20), even).keys() == {0, 1, 2, 3}


def test_workers_spread_over_equal_clades():
    made = tree(node(0), *(node(i, 0, 0.8) for i in range(1, 5)))
    made.close(0)
    begun = []
    for seed in range(4):
        begun.append(Clade(trials=64).select(made, Random(seed)).node)
        for _ in range(40):
            made.begin(begun[-1])
    assert sorted(begun) == [1, 2, 3, 4]


@given(made=trees(), seed=st.integers(0, 9))
def test_every_decision_says_what_was_drawn_and_leads_down(made, seed):
    choice = Clade().select(made, Random(seed))
    if choice is None:
        return
    at = 0
    for reason in choice.reasons:
        assert at in {above.id for above in made.path(reason.node)}
        assert 0 <= reason.terms["score"] <= 1
        assert (reason.rival is None) == (reason.among == 1)
        assert reason.among > 1 or reason is choice.reasons[-1]
        assert reason.rival is None or reason.rival_terms["score"] <= reason.terms["score"]
        at = reason.node
    assert at == choice.node


def test_a_node_is_wide_by_the_logarithm_of_its_clade():
    made, search = tree(node(0, value=0.99)), Clade(trials=1000, width=1.5)
    for step in range(150):
        chosen = search.select(made, Random(step)).node
        assert made.expansions(chosen) == 0 or made.expansions(chosen) < 1.5 * log2(1 + made.visits(chosen))
        made.add(node(len(made), chosen, 0.0))
    assert len(made.children(0)) == 11


def test_a_deterministic_suite_is_not_measured_again():
    flaky = replace(node(0), report=SuiteReport(flaky=("t",)))
    others = [node(i, 0, 0.5) for i in range(1, 5)]
    acts = {name: Clade(remeasure=name).select(tree(node(0), *others), Random(0)).act for name in REMEASURE}
    assert acts == {"flaky": "expand", "always": "measure", "never": "expand"}
    assert Clade().select(tree(flaky, *others), Random(0)).act == "measure"


def test_measurements_grow_faster_than_nodes_do():
    """m ** 0.6 >= n - 1 before each expansion, and no more measurements than that needs."""
    made, search, measured = tree(node(0)), Clade(remeasure="always"), 1
    for step in range(80):
        choice = search.select(made, Random(step))
        assert (choice.act == "expand") == (measured**0.6 >= len(made) - 1)
        measured += 1
        if choice.act == "expand":
            made.add(node(len(made), choice.node, 0.4))
        else:
            made.begin(choice.node, "measure")
            made.end(choice.node, "measure")
            made.measure_again(choice.node, Evaluation(0.4))
    assert len(made) < 20


def test_what_was_measured_again_counts_in_every_clade_above():
    made = tree(node(0), node(1, 0, 0.5), node(2, 1, 0.25))
    search = Clade(trials=1)
    search.select(made, Random(0))
    made.measure_again(2, Evaluation(0.75))
    for nodes in (made, tree(*made)):
        if nodes is not made:
            nodes.measure_again(2, Evaluation(0.75))
        assert search.posterior(nodes, 2, "self") == (pytest.approx(1.0), pytest.approx(1.0))
        assert search.posterior(nodes, 1, "clade") == (pytest.approx(1.5), pytest.approx(1.5))
        assert search.posterior(nodes, 0, "clade") == (pytest.approx(1.5), pytest.approx(2.5))


@dataclass
class Greedy:
    """Expands the state of the highest value."""

    def select(self, tree, rng):
        return Choice(max(tree, key=lambda n: n.value).id)


def best_skill(search, seed, steps=40):
    """A child has its parent's skill plus what its line gains with each step, which drifts and is seen by nobody; its
    value is its skill and luck that it does not pass on."""
    made, skill, gain = tree(node(0, value=0.2)), [0.2], [0.0]
    for step in range(steps):
        parent = search.select(made, Random(f"{seed}/{step}")).node
        luck = Random(f"{seed}/{parent}/{len(made.children(parent))}")
        gain.append(gain[parent] + luck.gauss(0, 0.03))
        skill.append(min(0.99, max(0.0, skill[parent] + gain[-1])))
        made.add(node(len(made), parent, min(0.99, max(0.0, skill[-1] + luck.gauss(0, 0.2)))))
    return max(skill)


def test_clades_lead_to_better_lines_than_single_measurements_do():
    clade, alone, greedy = (
        mean(best_skill(search, seed) for seed in range(40)) for search in (Clade(), Clade(value="self"), Greedy())
    )
    assert clade > alone
    assert clade > greedy


@pytest.mark.parametrize(
    "wrong", [{"value": "sum"}, {"trials": 0}, {"width": -1}, {"remeasure": "often"}, {"alpha": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Clade(**wrong)
