"""An issue of several parts: each is searched on its own, and merged when its tests pass beside the others'."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Observation, Submit
from agent.budget import Budget, Stop, Usage
from agent.config import load
from agent.engine.components import Components
from agent.errors import UsageError
from agent.evaluate.value.tests import PassingTests
from agent.measure.probing.spectrum import Spectrum
from agent.run.command_queue import steer
from agent.run.commands import Order
from agent.run.events import Added, Failed, Spent, Started
from agent.run.journal import read_events
from agent.run.paths import store_of
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.search.linear import Linear
from agent.solver.delegation.coordinating import Delegation
from agent.solver.delegation.part_search import PartResult, share
from agent.solver.delegation.plan import REST, SubTask, by_code, check, completed
from agent.solver.delegation.planning import to_note
from agent.solver.result import Result
from agent.solver.solve import solve
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import commit, git, task
from tests.scripted import ScriptedModel, answer
from tests.tiers import slow_but
from tests.trees import node

GOALS = ("t::a", "t::b", "t::c")


def part(name, *goals, needs=(), **changes):
    return SubTask(**{"id": name, "statement": "do it", "goal_tests": goals, "depends_on": tuple(needs), **changes})


class TestThePlan:
    @pytest.mark.parametrize(
        ("parts", "why"),
        [
            ([], "there are 0 parts"),
            ([part(f"p{n}", "t::a") for n in range(13)], "there are 13 parts"),
            ([part("../x", "t::a")], "the id '../x'"),
            ([part("x", "t::a"), part("x", "t::b")], "the id 'x'"),
            ([part("x", "t::a", statement=" ")], "does not say what is to be done"),
            ([part("x", "t::z")], "'t::z', which is not one of the failing tests"),
            ([part("x")], "names no failing test"),
            ([part("x", "t::a"), part("y", "t::a")], "'t::a' is the goal of two parts"),
            ([part("x", "t::a", needs=["y"])], "depends on 'y', which is not one of the parts"),
            ([part("x", "t::a", needs=["y"]), part("y", "t::b", needs=["x"])], "depend on each other: x, y, x"),
        ],
    )
    def test_that_is_none_is_refused_by_name(self, parts, why):
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are looked at
            check(parts, GOALS)
        assert why in str(refused.value)

    def test_has_a_last_part_for_the_goals_that_it_leaves_out(self):
        told = [part("x", "t::a"), part(REST, "t::b")]
        check(told, GOALS)
        *kept, last = completed(told, GOALS)
        assert kept == told
        assert (last.id, last.goal_tests, last.depends_on) == ("rest-0", ("t::c",), ("x", REST))
        assert completed(told, GOALS[:2]) == tuple(told)

    def test_of_a_model_is_read_strictly_and_the_facts_step_in_where_it_cannot_be(self):
        def ask(model, messages, **sampling):
            return model.complete(messages)

        wanted = Task("t", "Three <!-- hidden --> things", Workspace(), "pytest", GOALS)
        good = {"parts": [{"id": "x", "statement": "s", "goal_tests": list(GOALS)}]}
        bad = {"parts": [{"id": "x", "statement": "s", "goal_tests": ["t::z"]}]}
        wrong = {"parts": [{"id": "x", "statement": 1}]}
        model = ScriptedModel([answer(json.dumps(each)) for each in (bad, wrong, good)])
        note = to_note(wanted, Spectrum(), model, ask)
        assert (note["author"], [each["id"] for each in note["parts"]]) == ("scripted", ["x"])
        assert "hidden" not in str(model.heard[0])
        assert "not one of the failing tests" in model.heard[1][-1]["content"]
        note = to_note(wanted, Spectrum(), ScriptedModel([answer("no")] * 3), ask)
        assert (note["author"], len(note["parts"])) == ("facts", 1)

    def test_by_facts_keeps_together_what_executes_the_same_code(self):
        executed = {"t::a": {"x.py": (1, 2, 3, 4)}, "t::b": {"x.py": (2, 3)}, "t::c": {"x.py": (4,), "y.py": (1, 2, 3)}}
        parts = by_code(GOALS, Spectrum(executed=executed))
        assert [(each.goal_tests, each.files) for each in parts] == [
            (("t::a", "t::b"), ("x.py",)),
            (("t::c",), ("x.py", "y.py")),
        ]
        assert [each.goal_tests for each in by_code(GOALS, Spectrum())] == [GOALS]
        assert [each.goal_tests for each in by_code((), Spectrum())] == [()]

    @given(st.dictionaries(st.sampled_from(GOALS), st.frozensets(st.integers(0, 9))))
    def test_by_facts_is_always_a_plan_of_all_goals(self, lines):
        spectrum = Spectrum(executed={test: {"x.py": tuple(sorted(known))} for test, known in lines.items()})
        parts = by_code(GOALS, spectrum)
        check(parts, GOALS)
        assert completed(parts, GOALS) == parts

    def test_gives_each_part_a_share_of_every_limit_but_the_time(self):
        whole = load(flags={"budget.max_nodes": 10, "budget.max_usd": 3.0, "budget.max_seconds": 60.0, "workers": 2})
        one = share(whole, 3)
        assert (one.budget.max_nodes, one.budget.max_usd, one.budget.max_seconds) == (4, 1.0, 60.0)
        assert (one.budget.max_tokens, one.workers, one.delegate) == (None, 1, False)


FILES = {
    "a.py": "A = 0\n",
    "shared.py": "NAMES = []\n",
    "e.py": "E = 0\n",
    "test_all.py": """import a, e, shared

def test_a(): assert a.A == 1 and e.E < 5
def test_b(): assert "b" in shared.NAMES
def test_c(): assert "c" in shared.NAMES
def test_e(): assert e.E > 0
def test_fine(): pass
""",
    ".gitignore": "__pycache__/\n",
}
NEEDS = {"a": [], "b": ["a"], "c": ["a"], "e": []}
PLAN = {
    "parts": [
        {"id": name, "statement": f"Mend <{name}>.", "goal_tests": [f"test_all.py::test_{name}"], "depends_on": needs}
        for name, needs in NEEDS.items()
    ]
}
FIRST = {"a": "A = 1\n", "b": 'NAMES = ["b"]\n', "c": 'NAMES = ["c"]\n', "e": "E = 9\n"}
"""What each part writes at first: `c` conflicts with `b`, and `e` spoils the test of `a`."""
AGAIN = {"c": 'NAMES = ["b", "c"]\n', "e": "E = 1\n"}
PLACES = {"b": "shared.py", "c": "shared.py"}


class Team:
    """Does each part, and remembers what it was told and what was merged then. `c` waits until `b` is merged, and `e`
    until `a` is, so that they come too late."""

    def __init__(self, provider):
        self.merged = {name: threading.Event() for name in NEEDS}
        self.told = []
        self._provider = provider

    def __call__(self, task, base, directory, parts, known):
        name, again = task.id.rpartition("/")[2], "could not be merged" in task.statement
        self.told.append((name, {other for other in NEEDS if self.merged[other].is_set()}, task.statement))
        if name in AGAIN and not again:
            assert self.merged[{"c": "b", "e": "a"}[name]].wait(100)
        used = Usage(model_calls=1)
        with Run.open(directory) as run:
            run.record(Started(dump_task(task), {}, base))
            run.record(Spent(used, "model"))
        with self._provider.at(base) as box:
            box.write(PLACES.get(name, f"{name}.py"), (AGAIN if again else FIRST)[name].encode())
            state = box.snapshot()
        return PartResult(
            base, state, True, Result("solved", b"", True, Stop.SOLVED, used, 0, directory, 1, 0.0, {}, {})
        )

    def watch(self, event):
        if isinstance(event, Added) and event.node.kind == "merge":
            self.merged[event.node.policy_id].set()


@pytest.fixture(scope="module")
def solved(namespaces, tmp_path_factory):
    folder = tmp_path_factory.mktemp("delegated")
    wanted = task(commit(folder / "repo", FILES), statement="Mend all")
    with Run.open(folder / "run") as run, namespace_provider(folder / "run" / "store") as provider:
        team, model = Team(provider), ScriptedModel([answer(json.dumps(PLAN))])
        parts = Components(provider, Scripted(None), Linear(), PassingTests(), Budget(), baseline_runs=1, workers=3)
        result = solve(wanted, parts, run, on_event=team.watch, begin=partial(Delegation, team, model))
        yield result, run, team, provider


@pytest.mark.namespace
class TestDelegating:
    @pytest.mark.slow
    def test_ends_with_a_verified_patch_of_all_parts(self, solved):
        result, run, *_ = solved
        assert (result.status, result.verified, result.stop) == ("solved", True, Stop.SOLVED)
        assert result.final == {"passed": 5, "failed": 0}
        assert sorted(node.policy_id for node in run.tree if node.kind == "merge") == sorted(NEEDS)

    def test_begins_a_part_when_all_that_it_needs_is_merged(self, solved):
        _, _, team, _ = solved
        assert {name for name, _, _ in team.told} == set(NEEDS)
        assert all(merged.issuperset(NEEDS[name]) for name, merged, _ in team.told)
        assert any(not merged for name, merged, _ in team.told if name == "e")

    def test_has_nothing_of_a_part_in_the_integrated_state_before_it_is_merged(self, solved):
        _, run, _, provider = solved
        merged = set()
        for each in run.tree:
            merged |= {PLACES.get(each.policy_id, f"{each.policy_id}.py")} if each.kind else set()
            changed = provider.changes(run.tree.root.snapshot, each.snapshot)
            assert {change.path for change in changed if "__pycache__" not in change.path} == merged

    def test_gives_a_conflict_back_to_its_author_who_goes_on_from_what_was_merged(self, solved):
        result, run, team, _ = solved
        (failed,) = (e for e in run.journal.events() if isinstance(e, Failed) and e.policy_id == "c")
        assert re.search(r"with [be, ]*b[be, ]*\) and part c conflict in shared.py", failed.reason)
        first, second = (issue for name, _, issue in team.told if name == "c")
        assert "conflict in shared.py" not in first
        assert "conflict in shared.py" in second
        assert sorted(path.name for path in (result.run_dir / "parts" / "c").iterdir())[0] == str(failed.node)
        assert len(list((result.run_dir / "parts" / "c").iterdir())) == 2

    def test_merges_nothing_that_a_test_forbids(self, solved):
        _, run, team, _ = solved
        (failed,) = (e for e in run.journal.events() if isinstance(e, Failed) and e.policy_id == "e")
        assert "these tests do not pass: test_all.py::test_a" in failed.reason
        assert "test_all.py::test_a" in [issue for name, _, issue in team.told if name == "e"][-1]
        passing = [node.report.passed("test_all.py::test_a") for node in run.tree if node.kind]
        assert passing == sorted(passing)

    def test_counts_what_the_parts_have_used_once(self, solved):
        result, run, team, _ = solved
        assert result.usage.model_calls == len(team.told) + 1 == 7
        searches = [event.what for event in run.journal.events() if isinstance(event, Spent) and "/" in event.what]
        assert len(searches) == len(set(searches)) == 6


@pytest.mark.slow
@pytest.mark.namespace
def test_of_a_part_that_is_not_done_the_best_is_kept_beside_the_integrated_state(provider, tmp_path):
    def work(task, base, directory, parts, known):
        with Run.open(directory) as run:
            run.record(Started(dump_task(task), {}, base))
        with provider.at(base) as box:
            box.write("shared.py", AGAIN["c"].encode())
            state = box.snapshot()
        nothing = Result("improved", b"", True, Stop.EXHAUSTED, Usage(), 0, directory, 1, 0.0, {}, {})
        return PartResult(base, state, False, nothing)

    with Run.open(tmp_path / "run") as run:
        parts = Components(provider, Scripted(None), Linear(), PassingTests(), Budget(), baseline_runs=1)
        wanted = task(commit(tmp_path / "repo", FILES))
        result = solve(wanted, parts, run, begin=partial(Delegation, work, None))
        assert [node.kind for node in run.tree] == ["", "partial"]
    assert (result.status, result.final) == ("improved", {"passed": 3, "failed": 2})
    assert b'+NAMES = ["b", "c"]' in result.patch
    assert result.notes[-1] == "part part-1 is not merged: its search found nothing that makes its tests pass"


@pytest.mark.namespace
@pytest.mark.parametrize(("fails", "status"), slow_but([("", "submitted")], [("", "submitted"), ("two", "improved")]))
def test_where_no_test_is_a_goal_the_merged_parts_that_a_model_submitted_are_the_answer(
    provider, tmp_path, fails, status
):
    plan = {"parts": [{"id": name, "statement": "Do it.", "goal_tests": []} for name in ("one", "two")]}
    plan["parts"][1]["depends_on"] = ["one"]
    before = {}

    def work(task, base, directory, parts, known):
        name = task.id.rpartition("/")[2]
        with Run.open(directory) as run:
            run.record(Started(dump_task(task), {}, base))
        with provider.at(base) as box:
            before[name] = box.exec(["find", "-name", "[a-z]*.py"], timeout_s=100).stdout.decode().split()
            box.write(f"{name}.py", b"DONE = True\n")
            state = box.snapshot()
        found = Result("submitted", b"", True, Stop.EXHAUSTED, Usage(), 0, directory, 1, 0.0, {}, {})
        submits = Step((Submit(),), (Observation("Submitted."),), "Done.")
        return PartResult(base, None if name == fails else state, name != fails, found, submits)

    with Run.open(tmp_path / "run") as run:
        parts = Components(provider, Scripted(None), Linear(), PassingTests(), Budget(), baseline_runs=1)
        wanted = task(commit(tmp_path / "repo", {"test_all.py": "def test_fine(): pass\n"}), goal_tests=())
        model = ScriptedModel([answer(json.dumps(plan))])
        result = solve(wanted, parts, run, begin=partial(Delegation, work, model))
    assert result.status == status
    assert ("./one.py" in before["one"], "./one.py" in before["two"]) == (False, True)
    assert [f"b/{name}.py".encode() in result.patch for name in ("one", "two")] == [True, not fails]


def test_the_search_of_a_part_is_steered_and_not_the_whole(tmp_path):
    with Run.open(tmp_path / "run") as run:
        run.record(Started({}, {"delegate": True}, Snapshot("s0", "d0")))
        for each in (node(0), node(1, 0)):
            run.record(Added(each))
    for act in ("fork", "pin"):
        with pytest.raises(UsageError, match=r"steer the search of one, a run in .*/run/parts/PART/"):
            steer(tmp_path / "run", Order(act, 1))
    assert steer(tmp_path / "run", Order("prune", 1)) == "recorded"


TWO = {
    "plus.py": "def plus(a, b):\n    return a - b\n",
    "sign.py": "def positive(number):\n    return number < 0\n",
    "test_plus.py": "from plus import plus\n\n\ndef test_plus():\n    assert plus(1, 2) == 3\n",
    "test_sign.py": "from sign import positive\n\n\ndef test_positive():\n    assert positive(1) and not positive(0)\n",
    ".gitignore": "__pycache__/\n",
}


DYING = """
import os, signal, sys
from pathlib import Path
from agent.build.composition import start
from agent.config import load
from agent.run.events import Added
from agent.run.journal import read_events
from tests.projects import task

repo, run = map(Path, sys.argv[1:])
journal = run / "parts" / "part-1" / "0" / "journal.jsonl"

def die(event):
    if journal.exists() and any(isinstance(e, Added) and e.node.parents for e in read_events(journal)):
        os.kill(os.getpid(), signal.SIGKILL)

flags = {"delegate": True, "sandbox.kind": "namespace", "measure.baseline_runs": 1}
start(task(repo, statement="x"), load(flags=flags), run, on_event=die)
"""
"""A search that is killed inside of its first part, when that has recorded an edit and measured another."""


@pytest.mark.slow
@pytest.mark.namespace
def test_without_a_model_two_bugs_are_mended_apart_and_a_run_that_is_killed_twice_repeats_nothing(namespaces, tmp_path):
    repo, run = commit(tmp_path / "repo", TWO), tmp_path / "run"
    command = [sys.executable, "-m", "agent"]
    died = subprocess.run([sys.executable, "-c", DYING, repo, run], check=False)
    assert died.returncode == -signal.SIGKILL
    inside = (run / "parts" / "part-1" / "0" / "journal.jsonl").read_bytes()
    with subprocess.Popen(
        [*command, "resume", run], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if "merge part-1" in line:
                process.send_signal(signal.SIGKILL)
    first = run / "parts" / "part-1" / "0" / "journal.jsonl"
    before = first.read_bytes()
    assert before.startswith(inside)
    measured = [e.what for e in read_events(first) if isinstance(e, Spent)]
    assert measured == ["baseline", "tests", "tests", "tests", "verification"], "one was in flight, and is made again"
    merged = [e for e in read_events(run / "journal.jsonl") if isinstance(e, Added) and e.node.kind]
    assert [event.node.policy_id for event in merged] == ["part-1"]
    done = subprocess.run([*command, "resume", run, "--json"], capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert (told["status"], told["verified"]) == ("solved", True)
    assert first.read_bytes() == before
    assert [path.parent.name for path in run.glob("parts/part-1/*/journal.jsonl")] == ["0"]
    with Run.read(run) as whole:
        states = {path.stem for path in (run / "store" / "states").iterdir()}
        assert states == {node.snapshot.id.rpartition("/")[2] for node in whole.tree}
        parts = [Run.read(path) for path in run.glob("parts/*/*")]
        entered = [e.usage for e in whole.journal.events() if isinstance(e, Spent) and "/" in e.what]
    assert sum(entered, Usage()) == sum((part.usage for part in parts), Usage())
    for opened in parts:
        opened.close()
    patch = (run / "patch.diff").read_text()
    assert "+    return a + b" in patch
    assert "+    return number > 0" in patch
    assert git(repo, "status", "--porcelain", "--ignored") == ""
    assert steer(run, Order("prune", 2)) == "recorded"
    assert store_of(run / "parts" / "part-2" / "1") == store_of(run) == run / "store"
