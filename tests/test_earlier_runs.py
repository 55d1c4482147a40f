"""Searches that begin where earlier runs of their task had got to."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from agent.analysis.history.earlier_runs import EarlierRuns
from agent.build.composition import check
from agent.errors import ConfigError, PolicyError
from agent.run.run import Run
from agent.run.tree.choice import EXCHANGED, Choice
from agent.settings import Settings
from sandboxes import Snapshot
from tests import commands
from tests.exporting import TASK, Recorder, edit
from tests.halves import HIGH, LOW, SPOILT, halves
from tests.recipe_cases import Case, answering, as_call, environment, solve
from tests.scripted_server import ScriptedServer, says

FIRST, SECOND, LAST = edit("one"), edit("two"), edit("three")


def earlier(folder: Path, *values: float, **ends: Any) -> Recorder:
    """A run that went one way, through states of these values, with what is special about the last one."""
    made = Recorder(folder)
    for parent, (value, step) in enumerate(zip(values, (FIRST, SECOND, LAST), strict=False)):
        last = ends if parent + 1 == len(values) else {}
        made.add(parent, value, **{"steps": [step], **last})
    made.run.close()
    return made


def met(folder: Path, made: Recorder) -> EarlierRuns:
    found = EarlierRuns(folder)
    found.sync(made.run, None)
    return found


def wanted(found: EarlierRuns) -> tuple[int, str] | None:
    """Where which recorded state is to be reached next."""
    choice = found.next()
    return None if choice is None else (choice.node, choice.hint)


class TestTheWayToTheBestState:
    @pytest.fixture
    def now(self, tmp_path: Path) -> Recorder:
        return Recorder(tmp_path / "now")

    def test_is_followed_state_by_state_each_once(self, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "a", 0.3, 0.2, 0.6)
        found = met(tmp_path, now)
        choice = found.next()
        assert choice
        assert (choice.node, choice.kind, choice.exchanges) == (0, EXCHANGED, True)
        proposal = found.propose(SimpleNamespace(hint=choice.hint, steps=()), Random(0))
        assert (proposal.actions, proposal.final) == (FIRST.actions, True)
        assert found.next() is None, "it is in flight"
        now.add(0, 0.3, [FIRST])
        assert wanted(found) == (1, "2")
        now.add(1, 0.2, [SECOND])
        assert wanted(found) == (2, "3")
        now.add(2, 0.6, [LAST])
        assert wanted(found) is None

    def test_ends_where_a_state_differs_from_its_record(self, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "a", 0.3, 0.6)
        found = met(tmp_path, now)
        assert wanted(found) == (0, "1")
        now.add(0, 0.3, [FIRST], snapshot=Snapshot("s1", "another"))
        assert wanted(found) is None

    def test_is_that_of_the_highest_value_over_all_runs(self, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "a", 0.3)
        earlier(tmp_path / "b", 0.2, 0.6)
        earlier(tmp_path / "c", 0.2, 0.6)
        found = met(tmp_path, now)
        assert now.run.note(0, "begins from") == {"run": "b", "node": 2}
        assert wanted(found) == (0, "1")

    @pytest.mark.parametrize(
        "ends",
        [{"terminal": True}, {"line_end": "submitted"}, {"refused": True}, {"steps": ()}],
        ids=["solved", "submitted", "refused", "merged"],
    )
    def test_leads_to_a_state_that_can_be_gone_on_from(self, ends: Any, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "a", 0.3, 0.6, **ends)
        met(tmp_path, now)
        assert now.run.note(0, "begins from") == {"run": "a", "node": 1}

    def test_is_none_where_no_run_of_the_task_got_anywhere(self, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "worse", 0.1)
        others = {"statement": "Another."}, {"goal_tests": ("t.py::a",)}, {}
        for number, changes in enumerate(others):
            made = Recorder(tmp_path / f"other{number}", replace(TASK, **changes))
            made.add(0, 0.9, [FIRST])
            made.run.close()
        began = tmp_path / "other2" / "journal.jsonl"
        began.write_text(began.read_text().replace('"digest": "d"', '"digest": "of another base"'))
        (tmp_path / "torn").mkdir()
        (tmp_path / "torn" / "journal.jsonl").write_text("{}\n")
        assert wanted(met(tmp_path, now)) is None

    def test_is_chosen_once_in_the_life_of_a_run(self, now: Recorder, tmp_path: Path) -> None:
        earlier(tmp_path / "a", 0.3)
        met(tmp_path, now)
        earlier(tmp_path / "b", 0.9)
        found = met(tmp_path, now)
        assert [node.value for node in found._path] == [0.3]

    def test_is_refused_when_its_run_is_gone(self, now: Recorder, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match="has the state 7 any more"):
            met(tmp_path, now).propose(SimpleNamespace(hint="7", steps=()), Random(0))


def test_a_line_that_continues_from_a_state_of_another_run_is_the_runs_own() -> None:
    assert not Choice(1, kind=EXCHANGED, continues=True).exchanges


def test_states_come_from_one_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave one out"):
        check(Settings(exchange=tmp_path / "shared.git", begin_from=tmp_path))


def told(server: ScriptedServer, number: int) -> Any:
    """The conversation of a request, without how long the tests took."""
    return json.loads(re.sub(r"\d+(\.\d+)? s\b", "1 s", json.dumps(server.requests[number]["messages"])))


@pytest.mark.slow
@pytest.mark.namespace
def test_a_search_begins_from_the_best_state_of_earlier_runs_and_asks_no_model_for_the_way(tmp_path: Path) -> None:
    """One run repaired one half and gave up, another one spoilt it. The third is asked what the first was asked after
    its repair, and makes the other one. It is ended on the way, and resumed."""
    repo, runs = halves(tmp_path / "repo"), tmp_path / "runs"
    runs.mkdir()
    case = Case("", len, ([LOW],), ["budget.max_nodes=3"], tested=True)
    with ScriptedServer(answering(case)) as first, solve(repo, runs / "half", case, "", first) as run:
        half = run.tree[1].state_hash
    solve(repo, runs / "worse", replace(case, lines=([SPOILT],)), "").close()
    other = [says("The other.", as_call(HIGH), ("run_tests", {})), says("Done.", ("submit", {}))]
    case = Case("", len, ([HIGH],), ["begin_from=.", "budget.max_nodes=2"])
    with ScriptedServer(other) as server:
        solve(repo, runs / "whole", case, "", server).close()
        assert not server.requests, "the way alone took all states that it might"
        commands.ramify(["resume", runs / "whole", "--max-nodes", 4], cwd=tmp_path, env=environment(tmp_path))
    with Run.read(runs / "whole") as run:
        begun, solved = run.tree[1], run.tree[2]
        assert (begun.state_hash, begun.kind, begun.policy_id) == (half, EXCHANGED, "earlier/1")
        assert (solved.parents, solved.evaluation.solved) == ((1,), True)
        assert not [asked for asked in run.asked if asked.node == 0]
        assert run.usage.model_calls == len(server.requests) <= 2
    assert told(server, 0) == told(first, 1)
    again = commands.ramify(["replay", runs / "whole"], cwd=tmp_path, env=environment(tmp_path))
    assert again.stdout.startswith("identical: "), again.stdout
