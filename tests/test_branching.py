"""Branches: where a line of work fails, the next begins at the best state of it, in the same conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.registry import SEARCHES
from agent.search.strategies import Strategies
from agent.solver.solve import solve
from tests.projects import BUG, FIX, QUICK_TESTS, RUNNER, SOURCE, commit, quick_task
from tests.scripted import ScriptedModel, answer
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

SPREAD = "    return max(numbers) - min(numbers)\n"
GOOD_SPREAD = "    return max(numbers) - min(numbers) if numbers else 0\n"
FILES = {
    "means.py": SOURCE,
    "run.py": RUNNER,
    "test_means.py": QUICK_TESTS + "\n\ndef test_spread_of_nothing():\n    assert spread([]) == 0\n",
    ".gitignore": "__pycache__/\n",
}
"""Two bugs, a goal test for each."""
SUBMIT = ("submit", {})
STRATEGY = "Both functions are wrong."


def edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit", {"path": "means.py", "old": old, "new": new}


class Developer:
    """Repairs the first bug and tests it, then breaks it again and submits. From then on it finishes the work where its
    conversation holds the repair, and does nothing of use elsewhere."""

    def __init__(self) -> None:
        self.begun, self.finished = 0, list[list[Mapping[str, Any]]]()
        """The lines begun from nothing, and the conversations in which the work was finished."""
        self.broken = False

    def __call__(self, messages: Any) -> Any:
        said = [message for message in messages if message["role"] == "assistant" and message["content"] != STRATEGY]
        last = str(messages[-1]["content"])
        if "The next `submit` ends the work." in last:
            return answer("That is all.", SUBMIT)
        if not said:
            self.begun += 1
            remark = answer("A remark.", edit(BUG, f"{BUG}        # {self.begun}\n"), SUBMIT)
            return answer("First the mean.", edit(BUG, FIX), ("run_tests", {})) if self.begun == 1 else remark
        if len(said) == 1 and said[0]["content"] == "First the mean.":
            if self.broken:
                self.finished.append(list(messages))
                return answer("Now the spread.", edit(SPREAD, GOOD_SPREAD), SUBMIT)
            self.broken = True
            return answer("Now the spread.", edit(FIX, BUG), SUBMIT)
        return answer("That is all.", SUBMIT)


@pytest.mark.parametrize("name", slow_but(["auto"], ["adaptive", "auto", "best_first", "graph", "mcts", "swe_search"]))
def test_a_line_that_fails_is_followed_by_one_from_its_best_state(name, provider, tmp_path):
    developer = Developer()
    repo = commit(tmp_path / "repo", FILES)
    with Run.open(tmp_path / "run") as run:
        policy, search, limits = ChatPolicy(ScriptedModel(developer)), SEARCHES[name](), Budget(max_nodes=20)
        parts = Components(provider, policy, search, PassingTests(), limits, baseline_runs=1, patience=10)
        result = solve(quick_task(repo), parts, run)
        tree = run.tree
        first = next(node for node in tree if node.label.endswith("First the mean."))
    assert result.status == "solved"
    assert len(tree.children(first.id)) > 1
    (conversation, *_) = developer.finished
    assert conversation[2]["content"] == "First the mean."
    assert FIX.strip() in str(conversation[3]["content"])
    assert "Tests show that the following was tried from this state" in str(conversation[-1]["content"])


@pytest.mark.slow
def test_strategies_repair_a_solution_from_its_best_state(provider, tmp_path):
    developer = Developer()

    def model(messages):
        asked = "propose one strategy" in str(messages[-1]["content"])
        return answer(STRATEGY) if asked else developer(messages)

    repo = commit(tmp_path / "repo", FILES)
    with Run.open(tmp_path / "run") as run:
        policy, limits = ChatPolicy(ScriptedModel(model)), Budget(max_nodes=20)
        parts = Components(
            provider, policy, Strategies(strategies=1), PassingTests(), limits, baseline_runs=1, patience=10
        )
        result = solve(quick_task(repo), parts, run)
        tree = run.tree
        first = next(node for node in tree if node.label.endswith("First the mean."))
    assert result.status == "solved"
    assert tree.depth(first.id) > 1
    assert [child.kind for child in tree.children(first.id)] == ["solution", "debug"]
