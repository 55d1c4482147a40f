"""Attempts at one state: what the next is told of those before, what may make it differ, and when one goes round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Edit, Observation, RunTests, Search, Shell, View
from agent.actions.canonical import respelled
from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.models import Ask, Completion, Message, Model
from agent.policy import Position, Tried
from agent.policy.chat.policy import ChatPolicy
from agent.policy.chat.repeats import times
from agent.policy.chat.variation import ANGLES, variation
from agent.run.run import Run
from agent.run.tree.evaluation import MANIPULATION, Evaluation
from agent.run.tree.node import Node, Step
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from sandboxes import Provider, Sandbox
from tests.projects import quick_means, quick_task
from tests.scripted import ScriptedModel, answer
from tests.trees import node

FAILING = SuiteReport(
    outcomes={"t.py::a": Outcome.FAILED, "t.py::b": Outcome.FAILED},
    messages={"t.py::a": "src/mean.py:5: ZeroDivisionError", "t.py::b": "t.py:9: in b\nsrc/io.py:7: KeyError"},
)


@pytest.fixture(scope="module")
def box(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with provider.at(
        provider.create(quick_task(quick_means(tmp_path_factory.mktemp("all") / "project")).workspace)
    ) as box:
        yield box


def place(
    box: Sandbox, index: int, *tried: Tried, goals: tuple[str, ...] = ("t.py::a", "t.py::b"), **changes: Any
) -> Position:
    """At a child of the root that some others have tried to repair."""
    root = replace(node(0), report=FAILING)
    here = replace(node(1, 0), report=FAILING, evaluation=Evaluation(0.1, notes="Still failing: t.py::a, t.py::b"))
    given = replace(quick_task(Path("unused")), statement="It is wrong.", goal_tests=goals)
    return Position(given, (root, here), index, (), (), box, tried=tried, **changes)


DIFF = """diff --git a/src/mean.py b/src/mean.py
--- a/src/mean.py
+++ b/src/mean.py
@@ -1 +1 @@
-a == 0
+a <= 0
"""


def first_attempt(**changes: Any) -> Tried:
    step = Step(
        (Edit("src/mean.py", "a == 0", "a <= 0"), RunTests()), (Observation("Edited."), Observation("1 failed")), "said"
    )
    said = "Still failing: t.py::b (failed)\nKeyError: 'x'\nThe judge says: it hides the error instead of removing it."
    child = replace(node(2, 1), steps=(step,), evaluation=Evaluation(0.4, notes=said))
    return Tried("changed src/mean.py: The comparison is too narrow.", DIFF, replace(child, **changes))


class Ears:
    """A way to ask that keeps what was asked."""

    def __init__(self) -> None:
        self.messages: list[list[Message]] = []
        self.sampling: list[dict[str, Any]] = []

    @property
    def ask(self) -> Ask:
        def ask(model: Model, messages: Any, tools: Any = (), **sampling: Any) -> Completion:
            self.messages.append(list(messages))
            self.sampling.append(sampling)
            return model.complete(messages, tools, **sampling)

        return ask


def looks(**options: Any) -> ChatPolicy:
    return ChatPolicy(ScriptedModel(lambda heard: answer("", ("view", {"path": "a"}))), **options)


@pytest.mark.namespace
class TestTheSecondAttempt:
    def test_is_told_of_its_parent_and_of_the_first_one_its_diff_and_what_the_tests_and_the_judge_said(
        self, box: Sandbox
    ) -> None:
        ears = Ears()
        looks().propose(place(box, 1, first_attempt(), ask=ears.ask), Random(0))
        told = ears.messages[0][-1]["content"]
        assert told.startswith("The tests say of the state that you have reached: Still failing: t.py::a, t.py::b\n")
        assert told.split("None of it is in the files now.\n")[1] == (
            "\n"
            "- changed src/mean.py: The comparison is too narrow.\n"
            "  The change:\n"
            "    diff --git a/src/mean.py b/src/mean.py\n"
            "    --- a/src/mean.py\n"
            "    +++ b/src/mean.py\n"
            "    @@ -1 +1 @@\n"
            "    -a == 0\n"
            "    +a <= 0\n"
            "  What the tests said:\n"
            "    Still failing: t.py::b (failed)\n"
            "    KeyError: 'x'\n"
            "    The judge says: it hides the error instead of removing it.\n"
        )

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({}, False),
            ({"evaluation": Evaluation(0.1, parts={"harm": 0.1})}, True),
            ({"evaluation": Evaluation(0.1, notes=f"{MANIPULATION} it looks at whether it is tested")}, True),
            ({"refused": True}, True),
        ],
        ids=["nothing", "it broke a test", "it tampers with the tests", "the gate refused it"],
    )
    def test_is_told_of_the_first_where_no_goal_is_known_only_if_something_shows_that_it_is_wrong(
        self, box: Sandbox, changes: dict[str, Any], told: bool
    ) -> None:
        ears = Ears()
        looks().propose(place(box, 1, first_attempt(**changes), goals=(), ask=ears.ask), Random(0))
        assert ("The comparison is too narrow." in str(ears.messages[0])) is told

    def test_begins_with_the_same_bytes_as_the_first(self, box: Sandbox) -> None:
        ears = Ears()
        for index, tried in ((0, ()), (1, (first_attempt(),)), (2, (first_attempt(),))):
            looks(angles=True).propose(place(box, index, *tried, ask=ears.ask), Random(index))
        first, second, third = ears.messages
        assert first[:-1] == second[:-1] == third[:-1]
        assert second[-1]["content"].split("So that")[0] == third[-1]["content"].split("So that")[0]
        assert second != third

    def test_may_do_what_another_did(self, box: Sandbox) -> None:
        edit = {"path": "./src/mean.py", "old_str": "a == 0", "new_str": "a <= 0"}
        ears = Ears()
        model = ScriptedModel([answer("", ("edit", edit), ("run_tests", {}))])
        proposal = ChatPolicy(model).propose(place(box, 1, first_attempt(), ask=ears.ask), Random(0))
        assert proposal.actions == (Edit("./src/mean.py", "a == 0", "a <= 0"), RunTests())
        assert len(ears.messages) == 1

    def test_climbs_a_ladder_of_temperatures(self, box: Sandbox) -> None:
        ears = Ears()
        for index in range(4):
            looks(temperatures=[0.2, 0.7, 1.0]).propose(place(box, index, ask=ears.ask), Random(0))
        looks().propose(place(box, 0, ask=ears.ask), Random(0))
        assert [sampling.get("temperature") for sampling in ears.sampling] == [0.2, 0.7, 1.0, 1.0, None]

    def test_is_told_an_angle_only_where_that_is_asked_for_and_nobody_else_says_how_to_begin(
        self, box: Sandbox
    ) -> None:
        ears = Ears()
        for changes in ({"hint": "Look at b."}, {"kind": "solution"}, {}):
            looks(angles=True).propose(place(box, 1, ask=ears.ask, **changes), Random(0))
        looks().propose(place(box, 1, ask=ears.ask), Random(0))
        told = ["So that the attempts differ" in str(messages) for messages in ears.messages]
        assert told == [False, False, True, False]


@pytest.mark.namespace
class TestAVariation:
    def test_is_none_for_the_first_attempt(self, box: Sandbox) -> None:
        assert variation(place(box, 0)) is None

    def test_gives_the_attempts_at_a_state_different_angles_and_failures_in_turn(self, box: Sandbox) -> None:
        told = [variation(place(box, index)) for index in range(1, len(ANGLES) + 1)]
        assert len({each.angle for each in told if each}) == len(ANGLES) >= 4
        assert [(each.test, each.message[:11]) for each in told[:2] if each] == [
            ("t.py::b", "t.py:9: in "),
            ("t.py::a", "src/mean.py"),
        ]
        assert told == [variation(place(box, index)) for index in range(1, len(ANGLES) + 1)]

    def test_names_files_of_the_failures_that_nobody_changed(self, box: Sandbox) -> None:
        untouched, touched = variation(place(box, 1)), variation(place(box, 1, first_attempt()))
        assert untouched
        assert touched
        assert (untouched.files, touched.files) == (("src/mean.py", "src/io.py"), ("src/io.py",))


def turn(path: str, seen: str = "x") -> Step:
    return Step((View(path),), (Observation(seen),))


class TestTurnsThatRepeatThemselves:
    @pytest.mark.parametrize(
        ("paths", "count"), [("", 0), ("a", 1), ("ab", 1), ("baa", 2), ("aaab", 1), ("cabab", 2), ("abcabcabc", 3)]
    )
    def test_are_counted_alone_and_in_rounds(self, paths: str, count: int) -> None:
        assert times([turn(path) for path in paths]) == count

    @given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 3), st.integers(2, 5))
    def test_are_found_after_whatever_came_before(self, before: list[str], length: int, count: int) -> None:
        turns = [turn(path) for path in (*before, *(["x", "y", "z"][:length] * count))]
        assert times(turns) == count

    def test_are_none_when_the_results_differ(self) -> None:
        assert times([turn("a", "1 failed"), turn("a", "2 failed")]) == 1

    def test_are_told_apart_by_what_they_do_and_not_by_how_it_is_spelled(self) -> None:
        assert respelled(Shell("ls  -l\n", 5)) == respelled(Shell("ls -l"))
        assert respelled(View("./a.py")) == respelled(View("a.py"))
        assert respelled(Search("x", "src/")) == respelled(Search("x", "src"))
        assert respelled(View("a.py", 2)) != respelled(View("a.py"))


@pytest.mark.namespace
class TestAModelThatGoesRound:
    @pytest.mark.slow
    def test_is_told_so_and_then_its_line_of_work_ends_and_is_measured(
        self, provider: Provider, tmp_path: Path
    ) -> None:
        heard: list[str] = []

        def answers(messages: Any) -> Completion:
            heard.append(str(messages[-1]["content"]))
            return answer("", ("bash", {"command": "echo x > new; ls"}))

        with Run.open(tmp_path / "run") as run:
            policy = ChatPolicy(ScriptedModel(answers), max_repeats=3)
            parts = Components(provider, policy, BestOfN(1), PassingTests(), Budget(max_nodes=2), baseline_runs=1)
            solve(quick_task(quick_means(tmp_path / "repo")), parts, run)
        assert len(heard) == 3
        assert "same 2 times in a row" in heard[-1]
        assert "once more, the work ends here" in heard[-1]
        assert run.tree[1].report.outcomes
        assert (run.tree[1].label, run.tree[1].line_end) == (
            "changed new: did the same again and again",
            "it did the same again and again",
        )
        assert not run.tree.expandable(1)

    def test_has_nothing_left_to_propose_where_the_branch_goes_on_so(self, box: Sandbox) -> None:
        def at(repeated: int) -> Position:
            path: list[Node] = [node(0)]
            path += [replace(node(n, n - 1), steps=(turn("a"),)) for n in range(1, repeated + 1)]
            return replace(place(box, 0), path=tuple(path))

        assert looks(max_repeats=3).propose(at(2), Random(0)).actions
        ended = looks(max_repeats=3).propose(at(3), Random(0))
        assert (ended.actions, ended.message) == ((), "")
        assert "again and again" in ended.line_end
