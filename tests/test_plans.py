"""Plans: drawn by one call, shared by all workers and sessions, and followed one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.budget import Budget, BudgetSpent, Stop
from agent.engine.components import Components
from agent.errors import TooLong
from agent.evaluate.value.tests import PassingTests
from agent.models import Completion, Message
from agent.models.answers import Unreadable
from agent.policy import Position
from agent.policy.chat.plans import read_plans
from agent.policy.chat.policy import ChatPolicy
from agent.policy.chat.variation import ANGLES
from agent.prompts import render
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from sandboxes import Provider, Sandbox
from tests.projects import quick_means, quick_task
from tests.scripted import ScriptedModel, answer
from tests.trees import node

CAUSES = ("the comparison is too narrow", "the sum is wrong", "the caller passes nothing")
PLANS = "Let me think.\n\n" + "\n\n".join(
    f"Plan {number}: {cause}\n1. Look at means.py.\n2. Mend part {number}." for number, cause in enumerate(CAUSES, 1)
)


@pytest.fixture(scope="module")
def box(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with provider.at(
        provider.create(quick_task(quick_means(tmp_path_factory.mktemp("all") / "project")).workspace)
    ) as box:
        yield box


class Notes:
    """What a run knows, in a dictionary."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def __call__(self, key: str, find: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = find()
        return self.known[key]


def wants_plans(messages: Sequence[Message]) -> bool:
    """Whether plans are asked for, or asked for again."""
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    return any("different plans for this repair" in text for text in said)


def planner(plans: str | Exception = PLANS, first: int = 0) -> ScriptedModel:
    """Draws these plans, and else writes a file that nobody has written before."""
    numbers = count(first)

    def says(messages: Sequence[Message]) -> Completion:
        if not wants_plans(messages):
            return answer("", ("write", {"path": f"{next(numbers)}.txt", "content": "x"}), ("submit", {}))
        if isinstance(plans, Exception):
            raise plans
        return answer(plans)

    return ScriptedModel(says)


def drawn(model: ScriptedModel) -> int:
    """How often the model was asked for plans."""
    return sum(map(wants_plans, model.heard))


def told(model: ScriptedModel) -> list[str]:
    """The last thing that each turn was told."""
    return [str(heard[-1]["content"]) for heard in model.heard if not wants_plans(heard)]


def named(text: str) -> list[str]:
    """The plans that are spoken of in a text."""
    return [cause for cause in CAUSES if cause in text]


def attempts(box: Sandbox, model: ScriptedModel, number: int, notes: Notes, **changes: Any) -> list[str]:
    """What the first turns of so many children of the root are told last, with one policy."""
    policy = ChatPolicy(model, **({"plans": 3} | changes.pop("options", {})))
    given = replace(quick_task(Path("unused")), statement="It is wrong.", goal_tests=())
    for index in range(number):
        place = Position(given, (node(0),), index, (), (), box, memo=notes)
        policy.propose(replace(place, **changes), Random(index))
    return told(model)


class TestAnAnswer:
    def test_is_read_as_causes_and_steps_and_the_words_around_them_are_passed_over(self) -> None:
        text = "I see two.\n## **Plan 1: It is\tnarrow**\n\n 1. Look  here.\n2) Mend it.\nSure.\nPlan 2 : Two\n1. Go\n"
        assert read_plans(text, 3) == [
            {"cause": "It is narrow", "steps": ["Look here.", "Mend it."]},
            {"cause": "Two", "steps": ["Go"]},
        ]

    def test_has_identical_plans_once_and_no_more_than_were_asked_for(self) -> None:
        text = "Plan 1: A\n1. b\nPlan 2: a\n1.  B\nPlan 3: a\n1. c\nPlan 4: d\n1. e\n"
        assert [plan["steps"] for plan in read_plans(text, 2)] == [["B"], ["c"]]

    def test_counts_as_it_was_written_last(self) -> None:
        assert read_plans("Plan 1: a\n1. b\n\nNo, rather:\nPlan 1: c\n1. d", 3) == [{"cause": "c", "steps": ["d"]}]

    @pytest.mark.parametrize("text", ["", "I have no idea.", "Plan 1:\n1. b", "Plan 1: a\nLook at b.", "1. a\n2. b"])
    def test_without_a_cause_and_a_step_cannot_be_read(self, text: str) -> None:
        with pytest.raises(Unreadable, match="Plan 1: CAUSE"):
            read_plans(text, 3)


@pytest.mark.namespace
class TestTheChildrenOfTheRoot:
    def test_are_told_one_plan_each_last_of_all_and_one_call_drew_them(self, box: Sandbox) -> None:
        model = planner()
        texts = attempts(box, model, 4, Notes())
        assert [named(text) for text in texts] == [[cause] for cause in (*CAUSES, CAUSES[0])]
        assert "1. Look at means.py.\n2. Mend part 1.\n" in texts[0]
        assert drawn(model) == 1
        assert len(model.heard) == 5
        assert all(heard[:2] == model.heard[0][:2] for heard in model.heard)
        assert all(len(heard) == 3 for heard in model.heard)

    def test_are_told_to_differ_only_where_another_has_followed_their_plan(self, box: Sandbox) -> None:
        texts = attempts(box, planner(), 5, Notes(), options={"angles": True})
        assert ["Another attempt has followed it" in text for text in texts] == [False] * 3 + [True] * 2
        angles = [render(name).strip() for name in ANGLES]
        assert [any(angle in text for angle in angles) for text in texts] == [False] * 3 + [True] * 2
        assert texts[4].endswith("do what is right.\n")

    @pytest.mark.parametrize(
        "changes",
        [{"hint": "Look at b."}, {"path": (node(0), node(1, 0))}, {"kind": "strategy"}, {"options": {"plans": 0}}],
        ids=["a person", "depth", "a strategy", "the setting"],
    )
    def test_alone_have_plans_and_only_where_nothing_else_says_how_to_begin(
        self, box: Sandbox, changes: dict[str, Any]
    ) -> None:
        model, notes = ScriptedModel(lambda messages: answer("Do it.", ("view", {"path": "."}))), Notes()
        assert not any(map(named, attempts(box, model, 2, notes, **changes)))
        assert (drawn(model), notes.known) == (0, {})

    @pytest.mark.parametrize("plans", ["I would rather not.", TooLong("too long")], ids=["unreadable", "too long"])
    def test_go_on_without_plans_where_none_can_be_had_and_that_is_noted(
        self, box: Sandbox, plans: str | Exception
    ) -> None:
        model, notes = planner(plans), Notes()
        texts = attempts(box, model, 3, notes, options={"max_retries": 1, "angles": True})
        assert not any("Follow this plan" in text for text in texts)
        assert [text.startswith("So that the attempts differ") for text in texts] == [False, True, True]
        assert drawn(model) == (2 if isinstance(plans, str) else 1)
        (note,) = notes.known.values()
        assert note["plans"] == []
        assert ("cannot be read" if isinstance(plans, str) else "too long") in note["problem"]

    def test_do_not_take_a_budget_that_is_spent_for_a_model_that_has_no_plans(self, box: Sandbox) -> None:
        notes = Notes()
        with pytest.raises(BudgetSpent):
            attempts(box, planner(BudgetSpent(Stop.CALLS)), 1, notes)
        assert notes.known == {}


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_asks_for_plans_once_however_many_workers_and_sessions_it_has(provider: Provider, tmp_path: Path) -> None:
    repo, models = quick_means(tmp_path / "repo"), (planner(), planner(first=2))
    for nodes, model in zip((3, 4), models, strict=True):
        budget = Budget(max_nodes=nodes)
        policy = ChatPolicy(model, plans=3)
        parts = Components(provider, policy, BestOfN(depth=1), PassingTests(), budget, baseline_runs=1, workers=2)
        with Run.open(tmp_path / "run") as run:
            solve(quick_task(repo), parts, run)
            asked, known = run.usage.model_calls, run.note(0, "plans/scripted")
    assert [plan["cause"] for plan in known["plans"]] == list(CAUSES)
    assert [drawn(model) for model in models] == [1, 0]
    first, second = map(told, models)
    assert sorted(map(named, first)) == sorted([[CAUSES[0]], [CAUSES[1]]])
    assert [named(text) for text in second] == [[CAUSES[2]]]
    assert asked == 4


@pytest.mark.parametrize("plans", [-1, 21, 2.5, True, "three"])
def test_a_number_of_plans_that_means_nothing_is_refused_with_it(plans: Any) -> None:
    with pytest.raises(ValueError, match=rf"plans={plans!r}: give a whole number from 0 to 20"):
        ChatPolicy(planner(), plans=plans)
