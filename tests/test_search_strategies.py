"""Strategies: words first, then a solution by each, then its repair, as long as verdicts and values see a point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent.actions import Edit, Submit
from agent.budget import Budget
from agent.build.composition import start
from agent.config import load
from agent.engine.components import Components
from agent.errors import ConfigError
from agent.evaluate.value.tests import PassingTests
from agent.policy import Proposal
from agent.run.events import Spent
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Step
from agent.search.strategies import Strategies
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import BUG, FIX, GOAL, quick_means, quick_task
from tests.scripted_server import ScriptedServer, says
from tests.trees import node, tree


def of_kind(kind, id, parent, value=0.1, **parts):
    """A node of this kind, with a critic's verdict where one is given."""
    return replace(node(id, parent), kind=kind, evaluation=Evaluation(value, parts=parts))


def of_line(kind, id, parent, **changes):
    """A state of this kind and worth 0.5 that a conversation came to."""
    return replace(of_kind(kind, id, parent, 0.5), steps=(Step((), (), "said"),), **changes)


def planned(*nodes, strategies=2):
    """A root worth 0.1 with strategies 1 and 2, and these nodes below."""
    first = [of_kind("strategy", n, 0) for n in range(1, strategies + 1)]
    return tree(node(0, value=0.1), *first, *nodes)


def wanted(made, **settings):
    """At which node a child of which kind is wanted."""
    choice = Strategies(**{"strategies": 2} | settings).select(made, Random(0))
    return choice and (choice.node, choice.kind)


def test_strategies_come_first_then_a_solution_by_each():
    made = tree(node(0, value=0.1))
    order = []
    for _ in range(4):
        at, kind = wanted(made)
        order.append((at, kind))
        made.add(of_kind(kind, len(made), at, value=0.0 if kind == "solution" else 0.1))
    assert order == [(0, "strategy"), (0, "strategy"), (1, "solution"), (2, "solution")]
    assert wanted(made) is None


def test_a_solution_that_gained_something_is_repaired_before_the_next_strategy_is_carried_out():
    assert wanted(planned(of_kind("solution", 3, 1, 0.5))) == (3, "debug")


def test_a_branch_that_fell_below_its_parent_is_left():
    assert wanted(planned(of_kind("solution", 3, 1, 0.05))) == (2, "solution")
    assert wanted(planned(of_kind("solution", 3, 1, 0.5), of_kind("debug", 4, 3, 0.4)), debugs=1) == (2, "solution")
    assert wanted(planned(of_kind("solution", 3, 1, 0.5), of_kind("debug", 4, 3, 0.5)), debugs=1) == (4, "debug")


def test_a_critics_word_ends_a_branch_or_the_search():
    """Visible tests pass in each case; what the critic says of it differs."""
    assert wanted(planned(of_kind("solution", 3, 1, 0.9, progress=1.0, accept=0.0))) == (3, "debug")
    assert wanted(planned(of_kind("solution", 3, 1, 0.9, progress=1.0, abort=1.0))) == (2, "solution")
    assert wanted(planned(of_kind("solution", 3, 1, 0.9, progress=1.0, accept=1.0))) is None


def test_a_state_has_so_many_children_and_a_path_so_many_generations():
    made = planned(of_kind("solution", 3, 1, 0.5), of_kind("debug", 4, 3, 0.5), of_kind("debug", 5, 4, 0.5))
    assert wanted(made, debugs=1, depth=3) == (2, "solution")
    assert wanted(made, debugs=1, depth=4) == (5, "debug")
    assert wanted(made, debugs=2, depth=3) == (4, "debug")


def test_a_line_of_work_is_one_generation_however_often_it_was_measured():
    states = [of_line("solution", n, n - 1 if n > 3 else 1) for n in (3, 4)]
    made = planned(*states, of_line("solution", 5, 4, line_end="submitted"))
    assert wanted(made, depth=2, generations=2) == (5, "debug")
    assert wanted(made, generations=1) is None
    made.add(of_line("debug", 6, 5))
    assert wanted(made, debugs=1, depth=3) == (6, "debug")
    assert wanted(made, debugs=1, depth=2) == (2, "solution")


def test_what_failed_may_be_tried_again_and_counts_as_a_generation():
    made = planned()
    made.fail(1, "no answer")
    made.begin(2)
    assert wanted(made, generations=3) == (1, "solution")
    assert wanted(made, generations=2) is None


@pytest.mark.parametrize("generations", [1, 3, 7])
def test_never_generates_more_than_it_may(generations):
    made = tree(node(0, value=0.1))
    while choice := Strategies(generations=generations).select(made, Random(0)):
        made.add(of_kind(choice.kind, len(made), choice.node, value=0.2))
    assert sum(n.kind in ("solution", "debug") for n in made) == generations


def test_says_by_what_a_state_was_chosen_and_over_which():
    made = planned(of_kind("solution", 3, 1, 0.5))
    (reason,) = Strategies(strategies=2).select(made, Random(0)).reasons
    assert (reason.node, reason.among, reason.rival) == (3, 2, 2)
    assert reason.terms == {"score": 0.5, "depth": 2, "parent": 0.1}
    assert reason.rival_terms == {"score": 0.1, "depth": 1, "parent": 0.1}


def test_mutate_is_refused_with_the_remedy(tmp_path: Path):
    settings = load(flags={"policy.name": "mutate", "search.name": "strategies"})
    with pytest.raises(ConfigError, match="name a model with --model"):
        start(quick_task(tmp_path), settings, tmp_path / "run")


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="depth=0 is too small"):
        Strategies(depth=0)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_model_proposes_carries_out_and_repairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    wrong = ("edit", {"path": "means.py", "old": BUG, "new": BUG.replace("< 0", "< -1")})
    right = ("edit", {"path": "means.py", "old": BUG.replace("< 0", "< -1"), "new": FIX})
    script = [
        says("Guard the empty list\nThe length is compared with < instead of <=."),
        says("Return early\nBefore the loop."),
        says("Done.", wrong, ("submit", {})),
        says("Now.", right, ("run_tests", {})),
    ]
    with ScriptedServer(script) as server:
        flags = {"policy.name": "openai/tiny", "model.base_url": server.url, "search.name": "strategies"}
        flags |= {"sandbox.kind": "namespace", "search.strategies": 2, "policy.max_turns": 7}
        settings = load(flags=flags)
        assert start(quick_task(quick_means(tmp_path / "repo")), settings, tmp_path / "run").status == "solved"
    with Run.open(tmp_path / "run") as run:
        assert [n.kind for n in run.tree] == ["", "strategy", "strategy", "solution", "debug"]
        assert [n.id for n in run.tree.path(4)] == [0, 1, 3, 4]
        assert [n.submitted for n in run.tree] == [False] * 3 + [True, False]
        assert run.tree[1].label == "strategy: Guard the empty list"
        assert run.tree[1].report == run.tree[0].report
        measured_below = {e.node for e in run.journal.events() if isinstance(e, Spent) and e.what == "tests"}
        assert 1 in measured_below
        assert 0 not in measured_below
    first, second, solution, debug = (request["messages"] for request in server.requests)
    assert "tools" not in server.requests[0]
    assert first[:2] == second[:2] == solution[:2] == debug[:2]  # what a provider can cache
    assert "You have 7 turns" in first[1]["content"]
    assert "strategy: Guard the empty list" not in str(first)
    assert "- strategy: Guard the empty list\n" in second[-1]["content"]
    assert "The length is compared with < instead of <=." in solution[-2]["content"]
    assert solution[-1]["content"].startswith("Carry out the strategy")
    assert f"Still failing: {GOAL}" in debug[-1]["content"]


class Critic:
    """Refuses the first state that passes all tests, and accepts the next."""

    def __init__(self):
        self.passed = 0

    def evaluate(self, case):
        found = PassingTests().evaluate(case)
        if not found.solved:
            return found
        self.passed += 1
        if self.passed == 1:
            return replace(found, solved=False, value=0.9, parts={**found.parts, "accept": 0.0})
        return replace(found, parts={**found.parts, "accept": 1.0})


@pytest.mark.slow
@pytest.mark.namespace
def test_what_a_critic_refuses_is_debugged_although_it_was_submitted_and_what_it_accepts_ends_the_run(tmp_path: Path):
    def answer(position):
        if position.kind == "strategy":
            return Proposal((), message="Compare with <=.")
        old, new = (BUG, FIX) if position.kind == "solution" else (FIX, "    if not numbers:\n")
        return Proposal((Edit("means.py", old, new), Submit()))

    provider = namespace_provider(tmp_path / "run" / "store")
    with Run.open(tmp_path / "run") as run:
        parts = Components(
            provider, Scripted(answer), Strategies(strategies=1), Critic(), Budget(max_nodes=9), baseline_runs=1
        )
        result = solve(quick_task(quick_means(tmp_path / "repo")), parts, run)
    provider.close()
    assert (result.status, result.best_node) == ("solved", 3)
    assert [n.kind for n in run.tree] == ["", "strategy", "solution", "debug"]
    assert [n.evaluation.parts.get("accept") for n in run.tree] == [None, None, 0.0, 1.0]
