"""What a model expects of a change before its tests run: a score, or a place among its siblings."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent.evaluate.foresight import Foresight, SiblingRanking
from agent.evaluate.value import EvaluationInput
from agent.run.tree.tree import Tree
from tests.test_judging import case, says
from tests.trees import node, tree


def among(made: Tree, **changes) -> EvaluationInput:
    """A state that was made from the root of a tree."""
    return case(tree=made, state="new", patch_of=lambda node: f"+ {node.id}\n".encode(), **changes)


def ranked(*letters: str) -> str:
    return json.dumps({"ranking": letters})


class TestAScore:
    def test_is_given_by_the_change_and_by_the_tests_of_the_state_before(self):
        model = says(json.dumps({"score": 35}))
        assert Foresight(model).expected(case()) == 0.35
        shown = model.heard[0][-1]["content"]
        assert all(text in shown for text in ("It is wrong.", "+x = 2", "2 pass, 2 fail"))

    def test_out_of_range_is_asked_for_again_and_none_where_no_answer_can_be_read(self):
        model = says(json.dumps({"score": 101}), json.dumps({"score": 100}))
        assert Foresight(model).expected(case()) == 1.0
        assert "`score` is '101': give a number from 0 to 100" in model.heard[1][-1]["content"]
        assert Foresight(says("?", "?", "?")).expected(case()) is None

    def test_is_none_where_no_model_may_be_asked(self):
        assert Foresight(says()).expected(replace(case(), ask=None)) is None


class TestAPlace:
    SIBLINGS = (node(0), node(1, 0), node(2, 0), node(3, 1))

    def test_is_a_half_without_siblings_and_nobody_is_asked(self):
        assert SiblingRanking(says()).expected(among(tree(node(0)))) == 0.5

    @pytest.mark.parametrize(("ranking", "place"), [("CAB", 1.0), ("BCA", 0.5), ("ABC", 0.0)])
    def test_is_by_the_changes_of_those_made_from_the_same_state(self, ranking, place):
        model = says(ranked(*ranking))
        assert SiblingRanking(model).expected(among(tree(*self.SIBLINGS))) == place
        shown = model.heard[0][-1]["content"]
        assert [line for line in shown.splitlines() if line.startswith("+")] == ["+ 1", "+ 2", "+++ b/m.py", "+x = 2"]

    @pytest.mark.parametrize("ranking", ["AB", "ABCC", "ABD"])
    def test_is_asked_for_again_where_not_all_are_ranked_once(self, ranking):
        model = says(ranked(*ranking), ranked("A", "C", "B"))
        assert SiblingRanking(model).expected(among(tree(*self.SIBLINGS))) == 0.5
        assert "each of A, B, C once" in model.heard[1][-1]["content"]

    def test_is_not_given_to_a_state_beside_itself(self):
        same = tree(node(0), node(1, 0, state="new"))
        assert SiblingRanking(says()).expected(among(same)) == 0.5
