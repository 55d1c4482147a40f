"""Fused branches, repeated measurements, gates and panels, by real searches in a real sandbox."""

from __future__ import annotations

import os
import signal
import threading
from random import Random
from types import SimpleNamespace

import networkx as nx
import pytest
from rich.console import Console

from agent.actions import Edit, RunTests, Shell, Submit, View
from agent.analysis.report.tree import draw
from agent.budget import Budget, Stop
from agent.engine.components import Components
from agent.engine.turns import TurnRunner
from agent.errors import ModelError, PolicyError
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.events import Added, Failed, Merged, Remeasured, Spent
from agent.run.run import Run
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.choice import Choice
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes import Snapshot, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests.halves import HIGH, LOW, SPOILT, Doing, Planned, halves
from tests.policies import Scripted, pay
from tests.processes import guests
from tests.projects import quick_task, task

pytestmark = pytest.mark.namespace


@pytest.fixture
def attempt(tmp_path):
    """Solve the project with two bugs; a second call goes on with the same run."""

    def attempt(policy, search, cancel=None, task=quick_task, **settings):
        events = []
        limits = {k: settings.pop(k) for k in list(settings) if k.startswith("max_")}
        repo = tmp_path / "repo"
        with Run.open(tmp_path / "run") as run:
            provider = namespace_provider(tmp_path / "run" / "store")
            budget = Budget(**limits)
            parts = Components(provider, policy, search, PassingTests(), budget, baseline_runs=1, **settings)
            try:
                wanted = task(repo if repo.exists() else halves(repo))
                return solve(wanted, parts, run, cancel=cancel, on_event=events.append), run, events
            finally:
                provider.close()

    return attempt


def planned(*acts):
    """Expand the root twice, then these."""
    return Planned((Choice(0), Choice(0), *acts))


@pytest.mark.slow
def test_two_half_fixes_fused_pass_both_tests(attempt, tmp_path):
    result, run, _ = attempt(Doing((LOW, HIGH)), planned(Choice(1, "fuse", 2)))
    assert (result.status, result.verified, result.best_node) == ("solved", True, 3)
    fused = run.tree[3]
    assert (fused.parents, fused.kind, fused.label) == ((1, 2), "fuse", "fuse 1 + 2")
    assert [len(run.tree[n].report.failures) for n in range(4)] == [2, 1, 1, 0]
    assert LOW.new.splitlines()[0].encode() in result.patch
    assert [run.tree.visits(n) for n in range(4)] == [4, 2, 1, 1]
    with Run.open(tmp_path / "run") as again:
        assert again.tree[3] == fused
        assert dict(again.tree.graph.edges) == dict(run.tree.graph.edges)
        assert again.tree.graph[2][3]["kind"] == "reference"
        assert nx.is_directed_acyclic_graph(again.tree.graph)


@pytest.mark.slow
def test_branches_that_conflict_are_a_failure_that_names_the_files_and_measures_nothing(attempt):
    acts = planned(Choice(1, "fuse", 2), Choice(2, "fuse", 1))
    _, run, events = attempt(Doing((LOW, SPOILT)), acts, task=task)
    failed = [event for event in events if isinstance(event, Failed)]
    assert [event.reason for event in failed] == [
        "state 1 and state 2 conflict in halves.py",
        "state 2 and state 1 conflict in halves.py",
    ]
    assert len(run.tree) == 3
    assert sum(e.usage.measurements for e in events if isinstance(e, Spent) and e.what == "tests") == 3  # a copy, too
    assert (run.tree.begun(1, "fuse", 2), run.tree.expandable(1)) == (1, True)


@pytest.mark.slow
def test_a_fork_and_what_it_came_from_have_nothing_to_fuse(attempt):
    _, _, events = attempt(Doing((LOW, HIGH)), planned(Choice(1, "fuse", 0)))
    assert [e.reason for e in events if isinstance(e, Failed)] == ["state 0 has no change that state 1 lacks"]


@pytest.mark.slow
def test_a_state_is_measured_again_whatever_is_known_of_it(attempt):
    _, run, events = attempt(Doing((LOW,)), Planned((Choice(0), Choice(1, "measure"), Choice(0, "measure"))))
    again = [event for event in events if isinstance(event, Remeasured)]
    assert [event.node for event in again] == [1, 0]
    assert [e.value for e in run.tree.evaluations(1)] == [run.tree[1].value] * 2
    assert again[0].report.outcomes == run.tree[1].report.outcomes
    spent = [e.node for e in events if isinstance(e, Spent) and e.what == "tests"]
    assert spent == [0, 1, 0]
    assert (run.tree.expansions(1), len(run.tree)) == (0, 2)


@pytest.mark.slow
def test_behind_a_strict_gate_a_state_that_breaks_a_test_is_recorded_and_never_expanded(attempt):
    spoiling = Edit("halves.py", LOW.old, LOW.new + "_of_all(number):\n    return 0\n\n\ndef twice")
    breaking = Edit("halves.py", "    return 2 * number", "    return 3 * number")
    both = Doing((spoiling, breaking, LOW, HIGH))
    result, run, _ = attempt(both, BestFirst(), gate="strict")
    assert result.status == "solved"
    refused = [node for node in run.tree if node.refused]
    assert breaking.new.split()[-1] in refused[0].label
    for node in run.tree:
        assert not (node.refused and run.tree.children(node.id))
    path = run.tree.path(result.best_node)
    passed = [len(node.report.passes) for node in path if node.report.complete]
    assert passed == sorted(set(passed))


@pytest.mark.slow
def test_two_policies_that_can_each_do_half_solve_together_what_neither_does_alone(attempt, tmp_path):
    low, high = Doing((LOW,), "low/1"), Doing((HIGH,), "high/1")
    result, run, _ = attempt(low, BestFirst(), others=(high,))
    assert result.status == "solved"
    path = run.tree.path(result.best_node)
    assert sorted(node.policy_id for node in path[1:]) == ["high/1", "low/1"]
    assert '"policy_id": "low/1"' in (tmp_path / "run" / "journal.jsonl").read_text()
    assert {step.policy_id for node in path for step in node.steps} == {"high/1", "low/1"}


@pytest.mark.slow
@pytest.mark.parametrize("half", [LOW, HIGH], ids=["low", "high"])
def test_half_a_fix_alone_is_an_improvement(attempt, half):
    result, run, _ = attempt(Doing((half,)), BestFirst())
    assert (result.status, result.stop) == ("improved", Stop.EXHAUSTED)
    assert not run.tree.expandable(0)


@pytest.mark.slow
def test_what_was_paid_for_before_a_provider_gave_up_is_kept(attempt):
    def answer(position):
        pay(position)
        if position.steps:
            raise ModelError("quota")
        return Proposal((LOW,), "first", label="half", final=False)

    result, run, _ = attempt(Scripted(answer), BestFirst())
    assert (result.stop, result.status, result.best_node) == (Stop.FAILED, "improved", 1)
    assert isinstance(result.error, ModelError)
    assert (run.tree[1].label, len(run.tree[1].steps)) == ("changed halves.py: half", 1)


def test_what_was_paid_for_before_a_sandbox_died_is_kept(attempt):
    before = set(guests(os.getpid()))

    def answer(position):
        pay(position)
        if len(position.path) == 1 and position.steps:
            for guest in set(guests(os.getpid())) - before:
                os.kill(guest, signal.SIGKILL)
        return Proposal((HIGH if position.steps or len(position.path) > 1 else LOW,), final=bool(position.steps))

    result, run, _ = attempt(Scripted(answer), BestFirst(), max_calls=3)
    assert [len(node.steps) for node in run.tree] == [0, 1, 1]
    assert (result.status, result.usage.model_calls) == ("solved", 3)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"max_calls": 2}, {"max_tokens": 35}, {"max_usd": 0.35}], ids=str)
def test_a_limit_in_the_midst_of_turns_ends_them_and_keeps_what_they_did(attempt, limit):
    turns = [LOW, HIGH, Edit("halves.py", "2 * number", "number + number")]

    def answer(position):
        pay(position, tokens_in=10, cost_usd=0.1)
        return Proposal((turns[len(position.steps)],), final=False)

    result, run, _ = attempt(Scripted(answer), BestFirst(), **limit)
    assert (len(run.tree), len(run.tree[1].steps), result.usage.model_calls) == (2, 2, 2)
    assert result.status == "solved"


@pytest.mark.slow
def test_a_search_that_is_cancelled_between_two_turns_keeps_what_the_first_did(attempt):
    cancel = threading.Event()

    def answer(position):
        pay(position)
        cancel.set()
        return Proposal((LOW,), label="half", final=False)

    result, run, _ = attempt(Scripted(answer), BestFirst(), cancel=cancel)
    assert (result.stop, result.usage.model_calls) == (Stop.INTERRUPTED, 1)
    assert [node.label for node in run.tree] == ["base", "half"]
    assert (result.status, result.best_node) == ("improved", 1)


@pytest.mark.slow
def test_a_policy_is_told_what_came_of_all_that_was_tried_there(attempt):
    heard = []

    def answer(position):
        heard.append(position.tried)
        looks = [LOW, Shell("printf '' >> halves.py"), LOW]
        if position.index == 1:
            raise PolicyError("unreadable")
        return Proposal((looks[position.index],) if position.index < 3 else (), label=f"try {position.index}")

    attempt(Scripted(answer), Planned((Choice(0),) * 4))
    assert [(t.label, t.node and t.node.id, t.known, t.reason) for t in heard[-1]] == [
        ("try 0", 1, False, ""),
        ("", None, False, "unreadable"),
        ("try 2", 1, True, ""),
    ]


@pytest.mark.slow
def test_what_a_sibling_proposed_is_merged_unseen_and_counted(attempt, tmp_path):
    again = Edit("./halves.py", LOW.old, LOW.new)
    looking = (View("halves.py"), LOW)
    proposals = [(LOW,), (again,), looking, (Shell(""), LOW)]

    def answer(position):
        return Proposal(proposals[position.index] if position.index < len(proposals) else (), label="low")

    _, run, events = attempt(Scripted(answer), Planned((Choice(0),) * 4))
    assert [type(e) for e in events if isinstance(e, (Added, Merged))] == [Added, Added, Merged, Merged, Merged]
    assert sum(e.usage.measurements for e in events if isinstance(e, Spent) and e.what == "tests") == 1
    assert [bool(e.proposal) for e in events if isinstance(e, Merged)] == [True, True, False]
    with Run.open(tmp_path / "run") as reopened:
        for tree in (run.tree, reopened.tree):
            assert (tree.proposals.edge_count(0, 1), tree.proposals.edge_count(1, 0)) == (4, 0)
        console = Console(width=200)
        with console.capture() as drawn:
            console.print(draw(reopened.tree, reopened.tree.best().id))
        assert "[proposed 4 times] low" in drawn.get()


def turns_of(provider, repo, policy, known=lambda step: None):
    """From which state the turns of an expansion began, what they came to, and the states that were frozen for them."""
    made = TemporarySnapshots(provider)
    unasked = SimpleNamespace(tested=lambda *_: pytest.fail("no test"), submitted=lambda *_: pytest.fail("no submit"))
    host = SimpleNamespace(
        position=lambda box, steps: Position(None, (), 0, (), steps, box),
        feedback=lambda steps: unasked,
        ends_after=lambda turns: False,
        known_state=known,
        show_values=lambda state, wanted: pytest.fail("no values"),
    )
    base = provider.create(Workspace(path=halves(repo), mount="/workspace"))
    taken = TurnRunner(provider, policy, 1, made, host).take(base, Random(0))
    return base, taken, list(made)


def test_an_edit_of_a_missing_file_is_refused_and_nothing_is_run_or_frozen(provider, tmp_path):
    missing = Scripted(lambda position: Proposal((Edit("missing.py", "a", "b"),)))
    base, taken, frozen = turns_of(provider, tmp_path / "repo", missing)
    assert (taken.state, frozen) == (base, [])
    (seen,) = taken.steps[0].observations
    assert not seen.ok
    assert "there is no such file" in seen.text


def test_a_step_that_is_known_is_not_carried_out(provider, tmp_path):
    known, policy = Snapshot("known", "state"), Scripted(lambda position: Proposal((LOW,)))
    _, taken, frozen = turns_of(provider, tmp_path / "repo", policy, lambda step: known)
    assert (taken.state, taken.steps[0].actions, frozen) == (known, (LOW,), [])
    _, taken, frozen = turns_of(provider, tmp_path / "another", policy)
    assert frozen == [taken.state]


@pytest.mark.slow
@pytest.mark.parametrize("end", [RunTests(), Submit()], ids=["run_tests", "submit"])
def test_what_another_conversation_did_before_is_carried_out_again_and_answered(attempt, end):
    def answer(position):
        if len(position.path) > 1 or position.index > 1:
            return Proposal(())
        return Proposal((LOW, end), "I did it.")

    _, run, _ = attempt(Scripted(answer), Planned((Choice(0),) * 5), lines=2)
    assert [node.parents for node in run.tree] == [(), (0,), (0,)]
    assert run.tree[1].state_hash == run.tree[2].state_hash
    one, another = (node.steps[0].observations for node in (run.tree[1], run.tree[2]))
    assert len(one) == len(another) == 2
    assert one[0] == another[0]


def test_a_refused_edit_is_recorded_once_without_a_test_run(attempt):
    wrong = Scripted(lambda position: Proposal((Edit("missing.py", "a", "b"),) if position.index < 2 else ()))
    _, run, events = attempt(wrong, Planned((Choice(0),) * 3))
    assert [type(e) for e in events if isinstance(e, (Added, Merged))] == [Added, Added, Merged]
    assert not [e for e in events if isinstance(e, Spent) and e.what == "tests"]
    assert run.tree[1].state_hash == run.tree[0].state_hash
