"""The search that begins with a reproduction: where lines of work begin, and what they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.analysis.report.summary import as_json, as_text
from agent.budget import Budget, Usage
from agent.engine.components import Components, RoundComponents
from agent.evaluate.value.tests import PassingTests
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.run.tree.choice import REPRODUCTION
from agent.search.reproduce import Reproduce
from agent.solver.solve import solve
from tests.projects import BUG, FIX, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer

pytestmark = pytest.mark.namespace

GREEN = TESTS.replace("def test_mean_of_nothing():\n    assert mean([]) == 0.0\n", "")
TEST = "from means import mean\n\n\ndef test_issue():\n    assert mean([]) == 0.0  # {number}\n"
REPAIRS = (FIX, "    if not numbers:\n", "    if len(numbers) < 1:\n", "    if numbers == []:\n")
RUN, SUBMIT = ("run_tests", {}), ("submit", {})
ASKED = "write a test that shows the issue"


class Developer:
    """Writes a test where it is asked for one, and repairs the bug in another way each time."""

    def __init__(self) -> None:
        self.tests, self.repairs, self.heard = 0, list[str](), list[str]()

    def __call__(self, messages):
        said = [message for message in messages if message["role"] == "assistant"]
        self.heard.append(str(messages[-1]["content"]))
        if not said:
            assert ASKED in self.heard[-1]
            self.tests += 1
            test = ("edit", {"path": "test_issue.py", "old": "", "new": TEST.format(number=self.tests)})
            return answer("A test first.", test, RUN)
        if said[-1]["content"] == "A test first.":
            self.repairs.append(REPAIRS[len(self.repairs)])
            return answer(
                "Now the repair.", ("edit", {"path": "means.py", "old": BUG, "new": self.repairs[-1]}), SUBMIT
            )
        return answer("That is all.", SUBMIT)


def searched(provider, folder, developer, rollouts=4, more=None, **changes):
    files = {"means.py": SOURCE, "test_means.py": GREEN, ".gitignore": "__pycache__/\n", **(more or {})}
    repo = commit(folder / "repo", files)
    with Run.open(folder / "run") as run:
        waves = RoundComponents(rollouts)
        policy, limits = ChatPolicy(ScriptedModel(developer)), Budget(max_nodes=20)
        parts = Components(
            provider, policy, Reproduce(), PassingTests(), limits, baseline_runs=1, lines=rollouts, rounds=waves
        )
        return solve(task(repo, **changes), parts, run), run.tree


@pytest.mark.slow
def test_two_repairs_follow_each_test_and_share_the_conversation_that_led_to_it(provider, tmp_path):
    developer = Developer()
    result, tree = searched(provider, tmp_path, developer)
    shown = [node for node in tree if node.evaluation.shows_the_issue]
    assert [(node.parents, node.kind) for node in shown] == [((0,), REPRODUCTION)] * 2
    repairs = [[child.id for child in tree.children(node.id)] for node in shown]
    assert [len(children) for children in repairs] == [2, 2]
    assert developer.tests == 2
    assert len(developer.repairs) == 4
    assert all(tree[child].evaluation.reproduces for children in repairs for child in children)
    assert "Your own test shows the issue, and waits for the change: test_issue.py::test_issue" in developer.heard[1]
    assert developer.heard[1].endswith("now make the change that the issue asks for.")
    assert result.status == "submitted"
    assert result.reproduced_by == ("test_issue.py::test_issue",)
    assert b"test_issue.py" in result.patch


@pytest.mark.slow
def test_a_repair_that_declares_what_it_breaks_is_not_called_wrong(provider, tmp_path):
    asserts = "    with pytest.raises(ZeroDivisionError):\n        mean([])\n"
    old = f"import pytest\n\nfrom means import mean\n\n\ndef test_old():\n{asserts}"
    declared = ("submit", {"contradicted_tests": ["test_old.py::test_old: the issue wants 0.0 there"]})

    class Declaring(Developer):
        """Declares the test that asserts what the issue calls wrong."""

        def __call__(self, messages):
            said = [message["content"] for message in messages if message["role"] == "assistant"]
            if said[-1:] != ["A test first."]:
                return super().__call__(messages)
            self.heard.append(str(messages[-1]["content"]))
            self.repairs.append(REPAIRS[len(self.repairs)])
            return answer("Done.", ("edit", {"path": "means.py", "old": BUG, "new": self.repairs[-1]}), RUN, declared)

    developer = Declaring()
    result, tree = searched(provider, tmp_path, developer, rollouts=2, more={"test_old.py": old})
    assert [node.submitted for node in tree] == [False, False, True, True]
    assert not any("is not right yet" in heard for heard in developer.heard)
    assert result.declared == {"test_old.py::test_old": "the issue wants 0.0 there"}


@pytest.mark.slow
def test_what_each_activity_and_each_line_cost_is_in_the_result(provider, tmp_path):
    result, _ = searched(provider, tmp_path, Developer())
    assert (
        result.spent["propose"].model_calls
        == result.usage.model_calls
        == sum(line.model_calls for line in result.lines)
    )
    assert [line.model_calls for line in result.lines] == [2, 1, 2, 1]  # two share the request for a test
    assert sum(part.measurements for part in result.spent.values()) == result.usage.measurements
    assert result.spent["choose"].measurements > 0
    told = as_json(result, None)
    assert told["spent"]["propose"]["model_calls"] == 6
    assert [line["model_calls"] for line in told["lines"]] == [2, 1, 2, 1]
    assert all(0 < line["seconds"] < told["seconds"] for line in told["lines"])
    asked = replace(result, spent={**result.spent, "choose": Usage(model_calls=4, cost_usd=0.5, measurements=7)})
    assert "of which 6 calls to propose, 4 calls and 7 test runs to choose for 0.5000 dollars" in as_text(asked, None)


def test_a_state_with_nothing_but_a_reproduction_is_worth_more_than_the_base_state_and_less_than_a_repair(
    provider, tmp_path
):
    _, tree = searched(provider, tmp_path, Developer(), rollouts=1)
    base, shown, repaired = (tree[node_id].value for node_id in range(3))
    assert base < shown < repaired


@pytest.mark.slow
def test_an_unfinished_line_is_followed_by_one_from_its_best_state(provider, tmp_path):
    class Idle(Developer):
        """Repairs the bug in its first line, and then does the same until that line is ended."""

        ended = False

        def __call__(self, messages):
            said = [message["content"] for message in messages if message["role"] == "assistant"]
            if said == ["A test first."] and not self.repairs:
                self.repairs.append(FIX)
                return answer("The repair.", ("edit", {"path": "means.py", "old": BUG, "new": FIX}), RUN)
            if said[1:2] == ["The repair."] and not self.ended:
                self.ended = len(said) == 5
                return answer("Again.", ("bash", {"command": "true"}))
            return super().__call__(messages)

    _, tree = searched(provider, tmp_path, Idle(), rollouts=2)
    idle = next(node for node in tree if node.line_end and not node.submitted)
    repaired = tree[idle.parents[0]]
    assert repaired.evaluation.reproduces
    assert tree.expansions(repaired.id) == 2


def test_no_test_is_asked_for_where_goal_tests_show_the_issue(provider, tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": TESTS, ".gitignore": "__pycache__/\n"})
    heard = []

    def repairs(messages):
        heard.append(messages)
        return answer("I repair it.", ("edit", {"path": "means.py", "old": BUG, "new": FIX}), SUBMIT)

    with Run.open(tmp_path / "run") as run:
        policy, limits = ChatPolicy(ScriptedModel(repairs)), Budget(max_nodes=9)
        parts = Components(provider, policy, Reproduce(), PassingTests(), limits, baseline_runs=1, lines=1)
        wanted = task(repo, goal_tests=("test_means.py::test_mean_of_nothing",))
        assert solve(wanted, parts, run).status == "solved"
    assert ASKED not in str(heard)
