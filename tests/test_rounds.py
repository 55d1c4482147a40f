"""Rounds: a policy is learned from searches, and kept where it needs fewer states on bugs that it has not seen."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.errors import UsageError
from benchmarks.batch.batch import Attempt
from benchmarks.cli.options import split
from benchmarks.cli.round import app
from benchmarks.data.sources import open_source
from benchmarks.self_training.apart import common_repositories, require_apart
from benchmarks.self_training.difficulty import fitting, rates
from benchmarks.self_training.exporting import export
from benchmarks.self_training.playing import Conditions, PlayFailed, SomeFailed, flags_of, play
from benchmarks.self_training.policies import FIRST, Policy, Registry
from benchmarks.self_training.scores import FEWEST, Played, common, compare, needed, read, table
from benchmarks.self_training.turning import Learning, Round, turn
from tests.histories import History, P
from tests.histories import turn as did
from tests.instances import make_benchmark
from tests.test_edit_policy import TestCounts

EDIT = TestCounts.EDIT
FALSE = str(shutil.which("false"))
"""Stands for an interpreter that lacks a package."""


def played(*tried: int, unsolved: int = 0) -> dict[str, Played]:
    known = [*(Played(True, n) for n in tried), *(Played(False, 60) for _ in range(unsolved))]
    return {f"bug-{n}": each for n, each in enumerate(known)}


class TestScores:
    def test_what_is_needed_counts_the_states_of_unsolved_bugs_too(self) -> None:
        assert needed(list(played(2, 4, unsolved=1).values())) == 66 / 2

    def test_a_policy_that_is_always_twice_as_quick_is_so_beyond_doubt(self) -> None:
        better = compare(played(*range(2, 42, 2)), played(*range(1, 21)))
        assert better.ratio == 2
        assert better.interval == (2, 2)
        assert better.convincing

    def test_chance_is_not_convincing(self) -> None:
        better = compare(played(*[1, 9, 3, 8] * 5), played(*[8, 3, 9, 2] * 5))
        assert better.interval[0] < 1
        assert not better.convincing

    def test_a_quick_policy_that_loses_bugs_is_not_convincing(self) -> None:
        first, second = played(*[50] * 20), played(*[1] * 19, unsolved=1)
        assert compare(first, second).interval[0] > 1
        assert (compare(first, second).lost, compare(first, second).convincing) == (1, False)

    def test_few_bugs_convince_nobody(self) -> None:
        better = compare(played(*range(2, 2 * FEWEST, 2)), played(*range(1, FEWEST)))
        assert (better.bugs, better.interval, better.convincing) == (FEWEST - 1, (2, 2), False)

    def test_a_policy_that_solves_what_none_was_solved_of_can_be_recorded(self, tmp_path: Path) -> None:
        better = compare(played(unsolved=20), played(*[3] * 20))
        assert better.convincing
        registry = Registry(tmp_path)
        registry.add(Policy("v1", "counts", scores=better.to_json()))
        registry.close()
        scores = {"ratio": None, "interval": [None, None], "lost": 0, "won": 20, "bugs": 20}
        assert Registry(tmp_path).present.scores == scores

    def test_other_bugs_are_not_compared(self) -> None:
        with pytest.raises(UsageError, match="different bugs: 1 and 2"):
            compare(played(1), played(1, 2))

    def test_a_batch_that_was_begun_with_more_bugs_is_read_for_those_that_are_compared(self, tmp_path: Path) -> None:
        """As of a round that was gone on with on another part of its sources."""
        facts = {"status": "solved", "nodes": 4}
        attempts = [Attempt("a", "done", "revealed", facts=facts), Attempt("b", "infra", "revealed", error="no disk")]
        (tmp_path / "results.jsonl").write_text("".join(json.dumps(each.to_row()) + "\n" for each in attempts))
        assert read(tmp_path, ["a"]) == {"a": Played(True, 3)}
        for chosen, said in ((None, "such as b: no disk; run it again"), (["a", "c"], "such as c: not started")):
            with pytest.raises(UsageError, match=f"1 of 2 searches did not come to an end, {said}"):
                read(tmp_path, chosen)

    def test_one_bug_of_many_that_never_comes_to_an_end_is_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It would stop every round that it is in."""
        facts = {"status": "solved", "nodes": 4}
        attempts = [Attempt(str(n), "done", "revealed", facts=facts) for n in range(19)]
        attempts.append(Attempt("b", "infra", "revealed", error="no disk"))
        (tmp_path / "results.jsonl").write_text("".join(json.dumps(each.to_row()) + "\n" for each in attempts))
        before = read(tmp_path)
        assert before == {str(n): Played(True, 3) for n in range(19)}
        assert "1 of 20 searches did not come to an end, such as b: no disk; left out" in caplog.text
        first, second = common(before, {name: before[name] for name in ("3", "2")})
        assert (list(first), first) == (["2", "3"], second)

    def test_the_table_has_a_line_a_policy(self) -> None:
        lines = table({"uniform": played(4, 4), "counts": played(2, 2)}, "uniform").splitlines()
        assert lines[1].split() == ["uniform", "2", "2", "4.00", "[4.00,", "4.00]"]
        assert lines[2].endswith("2.00 [2.00, 2.00], 0 lost")


class TestARegistry:
    def test_begins_with_what_nothing_was_learned_from(self, tmp_path: Path) -> None:
        assert Registry(tmp_path).present == FIRST

    def test_a_version_that_was_not_kept_is_recorded_and_not_used(self, tmp_path: Path) -> None:
        registry = Registry(tmp_path)
        registry.add(Policy("v1", "counts", "v1/counts.json", "v0"))
        registry.add(Policy("v2", "model", parent="v1", kept=False))
        registry.close()
        again = Registry(tmp_path)
        assert (again.present.name, again.next_name) == ("v1", "v3")
        assert [each.name for each in again.versions] == ["v0", "v1", "v2"]

    def test_whose_first_round_was_killed_has_its_first_version_once(self, tmp_path: Path) -> None:
        Registry(tmp_path).close()
        (tmp_path / "policies.jsonl").write_bytes((tmp_path / "policies.jsonl").read_bytes() + b'{"name": "v')
        registry = Registry(tmp_path)
        registry.add(Policy("v1", "counts"))
        registry.close()
        assert [each.name for each in Registry(tmp_path).versions] == ["v0", "v1"]

    def test_versions_have_their_numbers_in_turn(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="v7 is recorded out of order: v1 is next"):
            Registry(tmp_path).add(Policy("v7", "counts"))

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            ([{"name": "v0"}], r"policies.jsonl:1 is not as Ramify writes it .*'kind'"),
            ([{"name": "v0", "kind": "mutate", "worth": 1}], "unexpected keyword argument 'worth'"),
            ([{"name": "v0", "kind": "oracle"}], "kind 'oracle' is not one of mutate, uniform, counts, model"),
            ([{"name": "v0", "kind": "mutate"}, {"name": "v2", "kind": "counts"}], "has v2 where v1 should be"),
        ],
    )
    def test_that_is_not_as_it_was_written_is_refused(self, tmp_path: Path, lines: list[Any], said: str) -> None:
        (tmp_path / "policies.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        for _ in range(2):  # the first refusal lets go of the file
            with pytest.raises(UsageError, match=said):
                Registry(tmp_path)

    def test_whose_present_policy_is_gone_says_so_before_anything_is_searched(self, tmp_path: Path) -> None:
        bugs, held = make_benchmark(tmp_path / "a"), make_benchmark(tmp_path / "b", ids=("other",))
        registry = Registry(tmp_path / "r")
        registry.add(Policy("v1", "counts", "v1/counts.json", "v0"))
        registry.close()
        with pytest.raises(UsageError, match=r"v1/counts\.json, which is the policy v1, is missing"):
            turn(Round(bugs, held, Learning(), Conditions()), tmp_path / "r")


class TestDifficulty:
    def test_the_rate_of_a_task_is_the_share_of_right_edits(self, tmp_path: Path) -> None:
        told = History(tmp_path / "task")
        told.add(0, did(EDIT))
        told.add(0, did(EDIT), a=P, b=P)
        assert rates([tmp_path / "task"]) == {"task": 0.5}

    def test_tasks_that_are_solved_sometimes_come_first_the_easiest_first(self) -> None:
        known = {"never": 0.0, "hard": 0.1, "middling": 0.5, "at once": 1.0}
        assert fitting(["new", *known], known, 0.9) == ["middling", "hard", "new"]

    def test_the_limits_themselves_are_outside(self) -> None:
        assert fitting(["none", "limit", "all"], {"none": 0.0, "limit": 0.5, "all": 1.0}, 0.5) == []
        assert fitting(["once in two"], {"once in two": 0.5}, 1.0) == ["once in two"]


def test_each_kind_of_policy_is_a_matter_of_settings(tmp_path: Path) -> None:
    assert flags_of("uniform", tmp_path) == ["policy.by=uniform"]
    assert flags_of("counts", tmp_path) == [f"policy.counts={tmp_path}"]
    assert flags_of("model", tmp_path, "m", "http://x/v1") == ["policy.model=openai/m", "model.base_url=http://x/v1"]


def test_more_tasks_than_a_command_line_holds_are_named_in_a_file(tmp_path: Path) -> None:
    """An argument has 128 KiB at most. The batch ends because most of these do not exist."""
    bugs = make_benchmark(tmp_path / "set")
    names = ["calc-1", *(f"{number:0150}" for number in range(1000))]
    with pytest.raises(PlayFailed, match="ended with 2"):
        play(bugs, tmp_path / "out", [], Conditions(), names)
    assert split([f"@{tmp_path / 'out.ids'}", "a,b"]) == (*names, "a", "b")


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("\n", "names no instance")])
def test_a_file_of_ids_that_names_none_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "ids").write_text(text)
    with pytest.raises(UsageError, match=said):
        split([f"@{tmp_path / 'ids'}"])


def test_a_batch_that_cannot_be_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match="ended with 2"):
        play(tmp_path / "nothing", tmp_path / "out", [], Conditions())


def test_an_export_that_was_killed_is_made_again(tmp_path: Path) -> None:
    History(tmp_path / "task").add(0, did(EDIT), a=P, b=P)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "train.jsonl").write_text('{"torn')
    manifest = export([tmp_path / "task"], "trajectories", tmp_path / "rows")
    assert [each.name for each in (tmp_path / "rows").glob("*.jsonl")] == [each["name"] for each in manifest["files"]]
    assert export([], "trajectories", tmp_path / "rows") == manifest


class TestWhatIsComparedOn:
    def round(self, folder: Path, held: str = "held", **fields: Any) -> Round:
        """One bug, `calc-1`, to learn from, and another one that is held out."""
        fields = {"repo": "example/calc", "code": "self, a\nreturn -a"} | fields
        tasks = make_benchmark(folder / "tasks", code="a, b\nreturn a - b") / "instances.jsonl"
        return Round(tasks, make_benchmark(folder / "held", ids=(held,), **fields), Learning(), Conditions())

    def test_are_no_bugs_that_are_learned_from(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="1 bugs, such as calc-1, are in --tasks, of this round or an earlier one"):
            turn(self.round(tmp_path, "calc-1"), tmp_path / "registry")

    def test_nor_that_an_earlier_round_learned_from(self, tmp_path: Path) -> None:
        History(tmp_path / "registry" / "v1" / "tasks" / "calc-7").add(0, did(EDIT))
        with pytest.raises(UsageError, match="1 bugs, such as calc-7, are in --tasks, of this round or an earlier one"):
            turn(self.round(tmp_path, "calc-7"), tmp_path / "registry")

    def test_nor_others_in_the_same_functions(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="1 bugs, such as calc-2, are in functions of --tasks"):
            turn(self.round(tmp_path, "calc-2", code="a, b\nreturn a - b"), tmp_path / "registry")

    def test_may_be_of_the_same_repositories_which_is_told(self, tmp_path: Path) -> None:
        for number, (repo, both) in enumerate([("example/calc", ["example/calc"]), ("example/other", [])]):
            wanted = self.round(tmp_path / str(number), repo=repo)
            tasks, held = (
                list(open_source(str(each), tmp_path).instances()) for each in (wanted.tasks, wanted.held_out)
            )
            require_apart(tasks, held, ())
            assert common_repositories(tasks, held) == both


@pytest.mark.slow
@pytest.mark.namespace
def test_a_round_bears_searches_that_failed_and_other_batches_do_not(namespaces: Path, tmp_path: Path) -> None:
    """There is no room for a state. One search of one is too many for a round as well, which says so by itself."""
    wanted = TestWhatIsComparedOn().round(tmp_path, requirements=[])
    full = Conditions(max_tried=1, settings=("sandbox.kind=namespace", "sandbox.limits.store_bytes=1000"))
    with pytest.raises(SomeFailed, match="ended with 1"):
        play(wanted.tasks, tmp_path / "out", [], full)
    with pytest.raises(UsageError, match="1 of 1 search did not come to an end, such as calc-1: the states of"):
        turn(replace(wanted, conditions=full), tmp_path / "registry")


def test_which_policy_searches_is_not_for_the_settings_to_say(tmp_path: Path) -> None:
    """It would be the one that searches before and after."""
    with pytest.raises(UsageError, match=r"policy\.by is chosen by the round itself"):
        turn(Round(tmp_path, tmp_path, Learning(), Conditions(settings=("policy.by=uniform",))), tmp_path / "r")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--model", "x"], "--model x works only with --learn model"),
        (["--learn", "model", "--model", "x"], r"--model x is not a folder with a checkpoint"),
        (["--learn", "model", "--train-python", FALSE], f"{FALSE} has no trl: name an interpreter that has it with"),
        (["--learn", "model", "--train-python", "/nowhere/python"], "/nowhere/python cannot be run"),
        (["--learn", "luck"], "--learn 'luck': give counts or model"),
        (["--learn", "sft"], "--learn 'sft': give counts or model, or a chat model with --policy MODEL_DIR"),
        (["--policy", "x", "--learn", "counts"], "--learn 'counts': with --policy give one of sft, dpo, kto, grpo"),
        (["--policy", "x", "--model", "y"], "--model y is for the policy `edit`"),
        (["--policy", "x"], "x is not a folder with a checkpoint"),
    ],
)
def test_what_is_wrong_with_a_round_is_said_before_anything_is_searched(flags: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["r", "--tasks", "a", "--held-out", "b", *flags])
    assert said in str(done.exception)
