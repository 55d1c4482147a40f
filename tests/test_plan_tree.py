"""The tree of plans: what plans share is done once, and where a step fails another is taken at the nearest state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.models import Completion, Message
from agent.policy.chat.plan_tree import Branch, merged
from agent.policy.chat.plans import AttemptPlan
from agent.policy.chat.policy import ChatPolicy
from agent.run.events import Failed
from agent.run.run import Run
from agent.search.linear import Linear
from agent.solver.result import Result
from agent.solver.solve import solve
from sandboxes import Provider
from tests.projects import BUG, FIX, means, task
from tests.scripted import ScriptedModel, answer

STEPS = {
    "Note it.": ("write", {"path": "note.txt", "content": "It is the mean."}),
    "Look at it.": ("view", {"path": "means.py"}),
    "Break it.": ("write", {"path": "means.py", "content": "def mean(numbers):\n    return None\n"}),
    "Go on.": ("write", {"path": "more.txt", "content": "more"}),
    "Mend it.": ("edit", {"path": "means.py", "old": BUG, "new": FIX}),
}
PLANS = [["Note it.", "Look at it.", "Break it.", "Go on."], ["note  IT.", "Look at it.", "Mend it."], ["Go on."]]


def plan(steps: Sequence[str], cause: str = "a cause") -> AttemptPlan:
    return {"cause": cause, "steps": list(steps)}


def size(branches: Sequence[Branch]) -> int:
    return sum(1 + size(branch.then) for branch in branches)


class TestPlansThatAreMerged:
    def test_are_one_way_as_far_as_they_begin_alike(self) -> None:
        first, second = merged([plan(PLANS[0], "one"), plan(PLANS[1], "two"), plan(PLANS[2], "one")])
        assert (first.step, first.causes) == ("Note it.", ("one", "two"))
        (look,) = first.then
        assert [(branch.step, branch.causes) for branch in look.then] == [
            ("Break it.", ("one",)),
            ("Mend it.", ("two",)),
        ]
        assert (second.step, second.then) == ("Go on.", ())

    @given(st.lists(st.lists(st.sampled_from("abcABC"), max_size=5), max_size=8))
    def test_have_as_many_steps_as_there_are_different_beginnings(self, plans: list[list[str]]) -> None:
        beginnings = {"".join(steps[:n]).lower() for steps in plans for n in range(1, len(steps) + 1)}
        assert size(merged([plan(steps) for steps in plans])) == len(beginnings)


def follower(plans: Sequence[Sequence[str]] = PLANS, mumbles: tuple[str, int] = ("", 0)) -> ScriptedModel:
    """Draws the plans, carries out each step that it is told of, and else writes down that it is free. To one step so
    many of its first answers cannot be read."""
    left = [mumbles[1]]
    drawn = [f"Plan {n}: cause {n}\n" + "\n".join(f"1. {s}" for s in steps) for n, steps in enumerate(plans, 1)]

    def says(messages: Sequence[Message]) -> Completion:
        told = str(messages[-1]["content"])
        if "different plans for this repair" in told:
            return answer("\n\n".join(drawn))
        step = re.search(r"no more than this step: (.*)", told)
        if left[0] and mumbles[0] in "".join(str(message["content"]) for message in messages[2:]):
            left[0] -= 1
            return answer("", ("viwe", {}))
        call = STEPS[step[1]] if step else ("write", {"path": "free.txt", "content": str(len(model.heard))})
        return answer("So it is.", call, ("run_tests", {}))

    model = ScriptedModel(says)
    return model


def followed(provider: Provider, folder: Path, model: ScriptedModel, nodes: int) -> tuple[Result, Run]:
    policy = ChatPolicy(model, plans=4, plan_tree=True)
    search, budget = Linear(backtrack=True), Budget(max_nodes=nodes)
    repo = folder / "repo" if (folder / "repo").exists() else means(folder / "repo")
    with Run.open(folder / "run") as run:
        parts = Components(provider, policy, search, PassingTests(), budget, baseline_runs=1)
        return solve(task(repo), parts, run), run


@pytest.mark.namespace
class TestASearch:
    @pytest.mark.slow
    def test_takes_another_step_at_the_nearest_state_where_one_has_failed(
        self, provider: Provider, tmp_path: Path
    ) -> None:
        model = follower()
        result, run = followed(provider, tmp_path, model, 20)
        assert [node.parents for node in run.tree] == [(), (0,), (1,), (2,), (2,)]
        assert run.tree[3].value < run.tree[2].value
        assert (result.status, result.best_node) == ("solved", 4)
        assert len(model.heard) == 1 + 4
        (told,) = [str(heard[-1]["content"]) for heard in model.heard if "Mend it." in str(heard[-1]["content"])]
        assert "assumes this cause: cause 2" in told
        assert "It is the last step." in told
        assert "in the same words" in str(model.heard[0][-1]["content"])

    @pytest.mark.slow
    @pytest.mark.parametrize("unreadable", [4, 8], ids=["once", "twice"])
    def test_asks_once_more_for_a_step_that_came_to_nothing_readable_and_then_leaves_it_out_by_name(
        self, provider: Provider, tmp_path: Path, unreadable: int
    ) -> None:
        """Four answers that cannot be read are all that an attempt puts up with."""
        model = follower([["Break it."], ["Mend it."]], mumbles=("Break it.", unreadable))
        result, run = followed(provider, tmp_path, model, 5)
        assert result.status == "solved"
        failed = [event.reason for event in run.journal.events() if isinstance(event, Failed)]
        if unreadable == 4:
            assert (len(run.tree), failed) == (3, [])
        else:
            assert (len(run.tree), len(failed)) == (2, 1)
            assert "the plan step 'Break it.' is skipped: " in failed[0]
        assert len(model.heard) == 1 + unreadable + (2 if unreadable == 4 else 1)

    @pytest.mark.slow
    def test_goes_on_where_a_session_ended_and_is_free_at_the_base_state_when_all_was_tried(
        self, provider: Provider, tmp_path: Path
    ) -> None:
        plans = [["Note it.", "Break it."], ["Note it.", "Go on."]]
        first, later = follower(plans), follower(plans)
        followed(provider, tmp_path, first, 3)
        _, run = followed(provider, tmp_path, later, 6)
        assert [node.parents for node in run.tree] == [(), (0,), (1,), (1,), (0,), (4,)]
        assert (len(first.heard), len(later.heard)) == (1 + 2, 3)
        assert "Carry out this step" not in "".join(str(heard[-1]["content"]) for heard in later.heard[1:])


def test_a_tree_of_no_plans_is_refused() -> None:
    with pytest.raises(ValueError, match="plans=0 draws none"):
        ChatPolicy(follower(), plan_tree=True)
