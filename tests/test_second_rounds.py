"""Rounds that learn: plans, gates and local repairs, in a real sandbox with a scripted model or policy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Edit, Submit
from agent.actions.canonical import canonical
from agent.analysis.report.summary import as_json
from agent.analysis.report.tree import facts
from agent.budget import Budget, Stop
from agent.engine.components import Components, RoundComponents
from agent.evaluate.value.tests import PassingTests
from agent.models import Completion, Message
from agent.policy import Policy, Position, Proposal
from agent.policy.chat.policy import ChatPolicy
from agent.run.rollouts import RoundPlan
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.settings import RefineSettings
from agent.solver.result import Result
from agent.solver.solve import solve
from sandboxes import Provider
from tests.policies import Scripted
from tests.projects import BUG, FIX, SOURCE, quick_means, quick_task
from tests.scripted import ScriptedModel, answer

pytestmark = pytest.mark.namespace

Solve = Callable[..., tuple[Result, Run]]
PLAN = {"steps": ["Mend the comparison in means.py."], "feedback": "other.py has nothing to do with it."}
WRONG = ("write", {"path": "other.py", "content": "RAW = 1\n"})
RIGHT = ("edit", {"path": "means.py", "old": BUG, "new": FIX})
TEXTS = [f"    if len(numbers) < -{n}:\n" for n in range(1, 9)]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_means(tmp_path_factory.mktemp("project") / "repo")


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a test that nothing mends."""
    repo = quick_means(tmp_path_factory.mktemp("half") / "repo")
    (repo / "test_more.py").write_text("def test_never():\n    assert False\n")
    return repo


@pytest.fixture
def go(provider: Provider, tmp_path: Path) -> Solve:
    """Solve a project in two rounds."""

    def go(of: Path, policy: Policy, *, rollouts: int = 1, **given: Any) -> tuple[Result, Run]:
        search, budget, waves = BestOfN(n=rollouts), Budget(max_nodes=20), RoundComponents(rollouts, 2, **given)
        parts = Components(provider, policy, search, PassingTests(), budget, baseline_runs=1, rounds=waves)
        with Run.open(tmp_path / "run") as run:
            return solve(quick_task(of), parts, run), run

    return go


def is_plan(messages: Sequence[Message]) -> bool:
    return "You draw plans" in str(messages[0]["content"])


def told(messages: Sequence[Message]) -> str:
    return json.dumps(list(messages))


def repairer(plan: object = PLAN) -> ScriptedModel:
    """Edits the wrong file unless a plan names the right one, and looks around first where it does; draws this plan."""

    def says(messages: Sequence[Message]) -> Completion:
        if is_plan(messages):
            return answer(json.dumps(plan))
        if "Mend the comparison in means.py." not in told(messages):
            return answer("It is other.py.", WRONG, ("submit", {}))
        if messages[-1]["role"] == "tool":
            return answer("As planned.", RIGHT, ("submit", {}))
        return answer("First I look.", ("view", {"path": "."}))

    return ScriptedModel(says)


@pytest.mark.slow
def test_an_attempt_at_the_wrong_file_is_followed_by_one_that_has_a_plan_and_begins_at_the_base_state(
    go: Solve, repo: Path
) -> None:
    model = repairer()
    result, run = go(repo, ChatPolicy(model), refine=RefineSettings(), planner=model)
    assert (result.status, result.verified, result.rounds, result.best_node) == ("solved", True, 2, 2)
    assert [node.parents for node in run.tree] == [(), (0,), (0,)]
    shown = facts(run)
    assert re.search(
        r"^worth of round 2: 1\.000 and solved, for \d test runs, \d+ s, 2 model calls", shown, re.MULTILINE
    )
    assert "\nrefinement: kept right 0 of 0, fixed wrong 1 of 1\n" in shown
    told_of = as_json(result, None)["round_results"]
    assert [(each["round"], each["solved"], each["model_calls"]) for each in told_of] == [(1, False, 2), (2, True, 2)]
    listing = run.tree[2].steps[0].observations[0].text
    assert "means.py" in listing
    assert "other.py" not in listing
    assert b"other.py" not in result.patch
    first, plan, second, third = model.heard
    assert [is_plan(heard) for heard in model.heard] == [False, True, False, False]
    assert told(second[:2]) == told(first)
    assert told(second).count("Attempt 1:") == 1
    assert "Attempt 2:" not in told(second)
    assert "RAW = 1" in told([run.tree[1].steps[0].message])  # type: ignore[list-item]  # the trace that is not passed on
    assert not any("RAW = 1" in told(heard) for heard in (plan, second, third))
    assert [asked.purpose for asked in run.asked] == ["policy", "plan", "policy", "policy"]
    (begun,) = Run.read(run.journal.directory).rounds
    assert begun.briefing is not None
    assert begun.briefing.plan == RoundPlan(steps=tuple(PLAN["steps"]), feedback=str(PLAN["feedback"]))
    assert run.note(0, "gate/1") == {"refine": True, "why": "hard: no patch solves the task"}


def test_an_attempt_after_which_nothing_is_known_is_told_the_same_bytes_as_the_first(go: Solve, repo: Path) -> None:
    model = repairer({"steps": []})
    result, run = go(repo, ChatPolicy(model), refine=RefineSettings(priors=0), planner=model)
    first, second = model.heard
    assert told(second) == told(first)
    assert (result.status, run.round) == ("improved", 2)


def test_an_easy_task_asks_for_no_plan_and_begins_no_second_round(go: Solve, repo: Path) -> None:
    model = ScriptedModel([answer("Clear.", RIGHT, ("submit", {}))])
    result, run = go(repo, ChatPolicy(model), refine=RefineSettings(), planner=model)
    assert (result.status, result.stop, run.round, len(model.heard)) == ("solved", Stop.SOLVED, 1, 1)
    assert run.note(0, "gate/1") == {"refine": False, "why": "easy: one patch that solves the task"}


class Rollouts:
    """The first rollout repairs a part and then breaks it; all others repair nothing."""

    def __init__(self) -> None:
        self.seen: list[tuple[Position, str]] = []
        self.policy = Scripted(self.answer)

    def answer(self, position: Position) -> Proposal:
        self.seen.append((position, position.box.read("means.py").decode()))
        if len(position.path) == 1 and not position.briefing and position.index == 0:
            return Proposal((Edit("means.py", BUG, FIX),), label="mend")
        old = FIX if len(position.path) > 1 else BUG
        return Proposal((Edit("means.py", old, TEXTS[len(self.seen)]), Submit()), label=f"attempt {len(self.seen)}")


@pytest.mark.slow
def test_a_local_repair_begins_at_the_recorded_state_and_the_original_is_kept_where_all_else_is_worse(
    go: Solve, half: Path
) -> None:
    rollouts = Rollouts()
    result, run = go(half, rollouts.policy, rollouts=2, refine=RefineSettings(local=0.5))
    (begun,) = run.rounds
    assert [(order.node, order.by) for order in begun.repairs] == [(1, "diagnosis")]
    later = [(place, text) for place, text in rollouts.seen if place.kind == "repair" or place.briefing]
    (local, text), (fresh, untouched) = later
    assert (local.kind, local.node.id, local.briefing) == ("repair", 1, None)
    assert local.node.state_hash == run.tree[1].state_hash
    assert text == SOURCE.replace(BUG, FIX)
    assert "went wrong with its next step: changed means.py: attempt 2." in local.hint
    assert (fresh.node.id, untouched) == (0, SOURCE)
    before = [place.actions for place in (run.tree[1].steps[0], run.tree[3].steps[0])]
    assert (fresh.earlier, local.earlier) == (frozenset(map(canonical, before)), frozenset())
    assert [(rollout.path[:2], rollout.round) for rollout in run.rollouts()][-2:] == [((0, 1), 2), ((0, 5), 2)]
    assert run.tree[4].kind == "repair"
    assert (result.status, result.best_node, result.stop) == ("improved", 1, Stop.FINISHED)
