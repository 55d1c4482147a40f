"""AB-MCTS samples whether to go wider or deeper, by what was seen of either."""

from __future__ import annotations

from random import Random
from statistics import fmean, variance

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.search.adaptive import Adaptive
from agent.search.support.posterior import Beta, Normal, Seen
from tests.test_search import chosen
from tests.trees import Grown, histories, node, tree


def seen(*values):
    return Seen(len(values), sum(values), sum(value * value for value in values))


def small():
    """Below the root 1 and 2, below 1 node 3, below 3 node 4."""
    return tree(node(0, value=0.1), node(1, 0, 0.5), node(2, 0, 0.2), node(3, 1, 0.9), node(4, 3, 0.4))


def decisions(search, made, seeds=60):
    """What is said of each arm: of children by their ids, of a new child of a node by `new` and the id."""
    said = {}
    for seed in range(seeds):
        *children, last = search.select(made, Random(seed)).reasons
        for key, reason in [*((r.node, r) for r in children), (("new", last.node), last)]:
            said[key] = (reason.terms["n"], pytest.approx(reason.terms["mean"]))
    return said


class TestPosterior:
    def test_it_is_the_conjugate_update(self):
        """n = 3, mean 0.4, squared deviations 0.08, and 3 * 1 / 4 * 0.4 ** 2 = 0.12 for the distance to the prior."""
        posterior = Normal(mean=0.0, kappa=1.0, nu=1.0, tau2=0.1).updated(seen(0.2, 0.4, 0.6))
        assert posterior == pytest.approx((1.2 / 4, 4.0, 4.0, (0.1 + 0.08 + 0.12) / 4))

    @given(st.lists(st.floats(0, 1), max_size=20))
    def test_observations_one_by_one_lead_to_the_same_as_all_at_once(self, values):
        prior = Normal(0.3, 2.0, 3.0, 0.05)
        posterior = prior
        for value in values:
            posterior = posterior.updated(seen(value))
        assert prior.updated(seen(*values)) == pytest.approx(posterior)

    def test_nothing_seen_is_the_prior(self):
        assert Normal(0.3, 2.0, 3.0, 0.05).updated(Seen()) == (0.3, 2.0, 3.0, 0.05)

    def test_draws_have_its_mean_and_its_variance(self):
        """A mean is drawn from Student's t with nu = 12: its variance is tau2 / kappa * nu / (nu - 2)."""
        rng = Random(1)
        draws = [Normal(0.3, 4.0, 12.0, 0.2).draw(rng) for _ in range(20_000)]
        assert fmean(draws) == pytest.approx(0.3, abs=0.01)
        assert variance(draws) == pytest.approx(0.2 / 4 * 12 / 10, rel=0.05)

    def test_of_coins_it_is_the_beta_distribution(self):
        """Values that sum to 1.2 of 3."""
        assert Beta(0.5, 0.5).updated(seen(0.2, 0.4, 0.6)) == pytest.approx((1.7, 2.3))
        assert Beta(1.7, 2.3).mean == pytest.approx(1.7 / 4)


class TestArms:
    @pytest.mark.parametrize(("prior", "before", "weight"), [("normal", 0.0, 1), ("beta", 0.5, 1)])
    def test_each_arm_has_seen_the_expansions_that_belong_to_it(self, prior, before, weight):
        said = decisions(Adaptive(prior=prior), small())
        for arm, values in {
            ("new", 0): (0.5, 0.2),
            1: (0.5, 0.9, 0.4),
            2: (0.2,),
            ("new", 1): (0.9,),
            3: (0.9, 0.4),
            ("new", 4): (),
        }.items():
            assert said[arm] == (len(values), (before + sum(values)) / (weight + len(values)))

    def test_an_expansion_in_flight_is_a_value_of_0_until_it_ends(self):
        made = small()
        made.begin(3)
        said = decisions(Adaptive(), made)
        assert said[1] == (4, 1.8 / 5)
        assert said["new", 3] == (2, 0.4 / 3)
        assert said["new", 0] == (2, 0.7 / 3)
        made.end(3)
        assert decisions(Adaptive(), made) == decisions(Adaptive(), small())

    def test_an_expansion_that_led_nowhere_is_a_value_of_0(self):
        made = small()
        made.fail(2)
        made.merge(2, 1)
        assert decisions(Adaptive(), made)[2] == (3, 0.2 / 4)

    def test_a_wide_node_draws_for_its_best_children_only(self):
        made = tree(node(0), *(node(i, 0, i / 100) for i in range(1, 61)))
        made.close(0)
        reasons = [Adaptive(arms=4).select(made, Random(seed)).reasons[0] for seed in range(40)]
        assert {reason.node for reason in reasons} == {57, 58, 59, 60}
        assert {reason.among for reason in reasons} == {4}

    def test_a_child_with_nothing_open_below_it_is_no_arm(self):
        made = small()
        made.close(0)
        made.close(2)
        assert {Adaptive().select(made, Random(seed)).reasons[0].node for seed in range(40)} == {1}


@settings(max_examples=30)
@given(history=histories)
def test_a_later_session_draws_the_same(history):
    search, grown = Adaptive(arms=3), Grown()
    for change in history:
        grown.happens(*change)
        search.select(grown.tree, Random(0))
    again = grown.again()
    for seed in range(3):
        assert search.select(grown.tree, Random(seed)) == search.select(again, Random(seed))


def test_workers_turn_away_from_a_branch_that_others_are_at():
    def goes_to_1(made):
        return sum(Adaptive().select(made, Random(seed)).reasons[0].node == 1 for seed in range(200))

    made = tree(node(0), node(1, 0, 0.6), node(2, 0, 0.6), node(3, 1, 0.6), node(4, 2, 0.6))
    made.close(0)
    alone = goes_to_1(made)
    for _ in range(4):
        made.begin(3)
    assert 80 < alone < 120
    assert goes_to_1(made) < alone / 2


def refined(gain, first):
    """A landscape: children of the root draw a value, those of other nodes add `gain` to it."""
    made, rng = tree(node(0)), Random(3)
    for step in range(150):
        at = chosen(Adaptive(), made, step)
        value = first(rng) if at == 0 else min(0.99, max(0.0, made[at].value + gain))
        made.add(node(len(made), at, value))
    return made


def test_it_goes_wider_where_refining_is_in_vain():
    made = refined(-1.0, lambda rng: rng.uniform(0.2, 0.6))
    assert len(made.children(0)) > 100


def test_it_goes_deeper_where_refining_pays():
    made = refined(0.1, lambda rng: rng.uniform(0.0, 0.2))
    assert len(made.children(0)) < 20
    assert made.depth(made.best().id) > 5


@pytest.mark.parametrize(
    "setting", [{"prior": "gamma"}, {"kappa": 0.0}, {"nu": -1.0}, {"tau2": 0.0}, {"tau2": float("nan")}, {"arms": 0}]
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        Adaptive(**setting)
