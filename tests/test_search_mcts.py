"""Monte Carlo tree search: bounds by hand, the descent, and an index that changes nothing."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.search.mcts import Mcts, blend_with_prior, subtree_value
from tests.test_search import chosen, grow
from tests.trees import Grown, histories, node, tree


class TestBounds:
    def test_uct_is_the_formula(self):
        made = tree(node(0), node(1, 0, 0.5), node(2, 0, 0.2), node(3, 1, 0.9))
        assert Mcts(c=1.4).terms(made, 1, 0.0) == pytest.approx(
            {
                "score": 0.7 + 1.4 * sqrt(log(4) / 2),
                "value": 0.7,
                "explore": 1.4 * sqrt(log(4) / 2),
                "visits": 2,
                "above": 4,
            }
        )

    def test_work_in_flight_counts_as_a_visit_of_value_0(self):
        made = tree(node(0), node(1, 0, 0.5), node(2, 0, 0.2), node(3, 1, 0.9))
        made.begin(3)
        assert Mcts(c=1.4).terms(made, 1, 0.0)["score"] == pytest.approx((0.5 + 0.9) / 3 + 1.4 * sqrt(log(5) / 3))

    def test_puct_is_the_formula_with_the_childs_part_of_all_priors(self):
        made = tree(node(0), node(1, 0, 0.5, prior=0.6), node(2, 0, 0.2, prior=0.2), node(3, 1, 0.9))
        first, second = (Mcts(formula="puct", c=2.0).terms(made, n, 0.8) for n in (1, 2))
        assert first["score"] == pytest.approx(0.7 + 2.0 * 0.75 * sqrt(3) / (1 + 2))
        assert second["score"] == pytest.approx(0.2 + 2.0 * 0.25 * sqrt(3) / (1 + 1))

    def test_puct_goes_where_the_prior_is(self):
        made = tree(node(0), node(1, 0, 0.3, prior=0.1), node(2, 0, 0.3, prior=0.9))
        assert chosen(Mcts(formula="puct", widen=1), made) == 2
        assert chosen(Mcts(formula="uct", widen=1), made) == 1

    def test_children_without_any_prior_are_chosen_by_value(self):
        made = tree(node(0), node(1, 0, 0.3, prior=0.0), node(2, 0, 0.4, prior=0.0))
        assert chosen(Mcts(formula="puct", widen=1), made) == 2


class TestValues:
    made = tree(
        node(0), node(1, 0, 0.6), node(2, 0, 0.4), node(3, 1, 0.0), node(4, 2, 0.7), node(5, 1, 0.3), node(6, 2, 0.7)
    )

    @pytest.mark.parametrize(
        ("how", "of_1", "of_2"), [("own", 0.6, 0.4), ("max", 0.6, 0.7), ("mean", 0.3, 0.6), ("clade", 1.9 / 5, 2.8 / 5)]
    )
    def test_a_subtree_is_worth_what_the_option_says(self, how, of_1, of_2):
        assert [subtree_value(self.made, n, how) for n in (1, 2)] == pytest.approx([of_1, of_2])

    @pytest.mark.parametrize(("how", "goes_to"), [("own", [1, 3, 5]), ("clade", [2, 4, 6])])
    def test_a_good_parent_of_poor_children_is_chosen_by_its_own_value_only(self, how, goes_to):
        assert chosen(Mcts(value=how, c=0.01, widen=1, alpha=0.0), self.made) in goes_to

    @given(prior=st.floats(0, 1), value=st.floats(0, 1), weight=st.floats(0.01, 10))
    def test_a_prior_fades_into_what_was_measured(self, prior, value, weight):
        blended = [blend_with_prior(prior, value, visits, weight) for visits in (0, 1, 2, 5, 50, 10**6)]
        distances = [abs(each - value) for each in blended]
        assert blended[0] == pytest.approx(prior)
        assert blended[-1] == pytest.approx(value, abs=1e-4)
        assert all(later <= earlier + 1e-12 for earlier, later in pairwise(distances))

    def test_one_visit_leaves_a_sixth_of_a_weight_of_a_fifth(self):
        assert blend_with_prior(1.0, 0.0, 1, 0.2) == pytest.approx(1 / 6)

    def test_a_prior_that_counts_is_in_the_value_of_a_child(self):
        made = tree(node(0), node(1, 0, 0.4, prior=0.1), node(2, 0, 0.4, prior=0.9))
        assert chosen(Mcts(widen=1), made) == 1
        assert chosen(Mcts(widen=1, prior_visits=0.2), made) == 2

    def test_a_prior_with_a_share_never_fades(self):
        made = tree(node(0), node(1, 0, 0.4, prior=0.1), node(2, 0, 0.4, prior=0.9))
        search = Mcts(prior_share=0.5)
        for child in range(3, 50):
            made.add(node(child, 2, 0.4))
        assert [search.facts(made, n)[0] for n in (1, 2)] == pytest.approx([0.25, 0.65])


class TestDescent:
    def test_nodes_are_expanded_in_the_order_computed_by_hand(self):
        """Each node has room for two children. The bounds of 1 and 2, as mean + 0.5 * sqrt(ln N / n), before the third
        choice and each that follows: 1.12, 1.02; 1.02, 1.09; 1.05, 0.95; 0.79, 0.97; 0.80, 0.87. In the end 2 has no
        room, and its children are worth 0.5 and 0.4. By their means alone 1 would be gone on with at the fourth."""
        values = {1: 0.6, 2: 0.5, 3: 0.6, 4: 0.5, 5: 0.0, 6: 0.4, 7: 0.0}
        order = grow(Mcts(c=0.5, widen=2, alpha=0.0), tree(node(0)), values.__getitem__, 7)
        assert order == [0, 0, 1, 2, 1, 2, 4]

    def test_it_goes_to_the_highest_bound(self):
        made = tree(node(0), node(1, 0, 0.9), node(2, 0, 0.1))
        assert chosen(Mcts(c=0.1, widen=1, alpha=0.5), made) == 1

    def test_it_spreads_its_workers(self):
        made = tree(node(0), node(1, 0, 0.6), node(2, 0, 0.55))
        search, nodes = Mcts(c=0.5, widen=1, alpha=0.0), []
        for _ in range(2):
            nodes.append(chosen(search, made))
            made.begin(nodes[-1])
        assert sorted(nodes) == [1, 2]

    def test_it_widens_with_the_square_root_of_the_visits(self):
        made = tree(node(0))
        grow(Mcts(widen=2.0, alpha=0.5), made, lambda n: 0.1, 60)
        assert len(made.children(0)) in range(15, 18)

    def test_a_path_of_full_length_does_not_end_the_search(self):
        made = tree(node(0), node(1, 0, 0.1), node(2, 0, 0.9), node(3, 2, 0.9))
        order = grow(Mcts(widen=1, alpha=0.0, depth=2, c=0.1), made, lambda n: 0.9, 8)
        assert len(order) == 8
        assert max(made.depth(n.id) for n in made) == 2

    def test_every_step_says_why(self):
        made = tree(node(0), node(1, 0, 0.9), node(2, 0, 0.1), node(3, 1, 0.8))
        search = Mcts(widen=1, alpha=0.0)
        made.begin(3)
        choice = search.select(made, Random(0))
        first, *_, last = choice.reasons
        assert (first.node, first.rival, first.among) == (1, 2, 2) or (first.node, first.rival) == (2, 1)
        assert first.terms == search.terms(made, first.node, 2.0)
        assert first.rival_terms == search.terms(made, first.rival, 2.0)
        assert last.node == choice.node


def plain(search, made):
    """The choice by a scan of all children."""

    def is_open(node_id):
        return made.expandable(node_id) and made.depth(node_id) < search.depth

    def open_below(node_id):
        return is_open(node_id) or any(open_below(child.id) for child in made.children(node_id))

    def score(node_id):
        siblings = made.children(made.parent(node_id).id)
        return search.terms(made, node_id, sum(s.prior for s in siblings))["score"]

    at = 0
    if not open_below(at):
        return None
    while True:
        visits = made.visits(at) + made.pending_below(at)
        below = [child.id for child in made.children(at) if open_below(child.id)]
        if not below or (is_open(at) and made.expansions(at) < search.widen * visits**search.alpha):
            return at
        at = max(below, key=lambda child: (score(child), -child))


@pytest.mark.parametrize(
    "search",
    [
        Mcts(),
        Mcts(widen=1, alpha=0.3, depth=3, value="clade"),
        Mcts(formula="puct", widen=1),
        Mcts(formula="puct", c=0.3, widen=1.5, alpha=0.4, value="max", prior_visits=0.5),
        Mcts(prior_share=0.5),
    ],
    ids=["uct", "clade", "puct", "max", "share"],
)
class TestIndex:
    @given(history=histories)
    def test_it_chooses_what_a_scan_of_all_children_chooses(self, search, history):
        grown = Grown()
        for change in history:
            grown.happens(*change)
            assert chosen(search, grown.tree) == plain(search, grown.tree)

    def test_it_does_so_while_a_tree_becomes_large(self, search):
        made, rng = tree(node(0)), Random(1)
        for _ in range(250):
            selected = chosen(search, made)
            assert selected == plain(search, made)
            made.begin(selected)
            made.end(selected)
            made.add(node(len(made), selected, rng.choice([0.0, 0.3, 0.5, rng.random()]), prior=rng.random()))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"formula": "ucb"}, "'ucb': one of uct, puct"),
        ({"value": "best"}, "'best': one of own, mean"),
        ({"c": -1.0}, "c=-1.0"),
        ({"depth": 0}, "depth=0"),
        ({"prior_share": 1.5}, "prior_share=1.5"),
        ({"widen": 0.0}, "widen=0.0"),
        ({"alpha": 2.0}, "alpha=2.0"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(options, named):
    with pytest.raises(ValueError, match=named):
        Mcts(**options)


def test_the_last_reason_says_what_the_node_is_held_for_even_where_there_was_no_decision():
    made = tree(node(0, value=0.1), node(1, 0, 0.6), node(2, 1, 0.2), node(3, 2, 0.4))
    choice = Mcts(widen=0.9, alpha=0.5).select(made, Random(0))
    assert [each.node for each in choice.reasons] == [choice.node] == [0]
    only = Mcts(widen=0.5, alpha=0.1).select(made, Random(0))
    assert [each.node for each in only.reasons] == [only.node] == [3]
    assert only.reasons[0].terms == {"score": 0.5, "expansions": 0, "visits": 1, "value": 0.4}
