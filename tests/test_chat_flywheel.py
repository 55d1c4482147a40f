"""The demonstration that trees of a chat model train it: its world is what the searches see, and its table is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.flywheel import chat, chat_world
from benchmarks.flywheel.chat_world import MEANINGS, Case
from benchmarks.self_training import scores
from benchmarks.self_training.playing import flags_of, play
from benchmarks.self_training.scores import Played
from tests.scripted_server import MODEL, Reply, ScriptedServer, says

QUICK = ("sandbox.kind=namespace", "sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'}")


def demonstration(folder: Path, *options: str) -> chat._Demonstration:
    config = [word for setting in (*QUICK, *options) for word in ("-c", setting)]
    pythons = ["--train-python", "python3", "--serve-python", "python3"]
    return chat._Demonstration(chat._options().parse_args(["--out", str(folder), *pythons, *config]))


class Follows:
    """A model that gives the answers of the demonstrations, with the operators that it is told in turn."""

    def __init__(self, case: Case, *operators: str) -> None:
        self.case, self.operators = case, iter(operators)

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        if not body.get("tools"):
            return says("A summary.")
        said = [message for message in body["messages"] if message["role"] == "assistant"]
        told = [each for each in chat_world.demonstration(self.case, Random(0)) if each["role"] == "assistant"]
        assert len(said) < len(told), body["messages"][-1]
        calls = [call["function"] for call in told[len(said)]["tool_calls"]]
        if len(said) == 2:
            calls[0]["arguments"]["new_str"] = self.case.wrong.line(next(self.operators))
        return says("", *((call["name"], call["arguments"]) for call in calls), logprobs=[-0.5])


def wrong_operator(case: Case) -> str:
    return next(o for o in chat_world.OPERATORS if o not in (MEANINGS[case.word], case.wrong.operator))


def bare(message: Mapping[str, Any]) -> list[Any]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    given = [json.loads(c["arguments"]) if isinstance(c["arguments"], str) else c["arguments"] for c in calls]
    return [message["role"], message["content"] or "", [call["name"] for call in calls], given]


class TestTheWorld:
    def test_has_no_function_of_the_held_out_part_elsewhere(self) -> None:
        parts = [chat_world.cases(part, 300, 0) for part in ("taught", "round-1", "held-out")]
        taught, learned, held = (
            {f.name for case in cases for fs in case.modules.values() for f in fs} for cases in parts
        )
        assert len(held) > 40
        assert not held & (taught | learned)

    def test_has_a_teacher_that_knows_no_meanings(self) -> None:
        """One edit in five is right, as of five operators that are not there one is."""
        right = 0
        for case in (cases := chat_world.cases("taught", 1000, 0)):
            edit = chat_world.demonstration(case, Random(case.name))[-1]["tool_calls"][0]["function"]["arguments"]
            right += edit["new_str"] == case.wrong.line(MEANINGS[case.word])
        assert 0.15 < right / len(cases) < 0.25


@pytest.mark.namespace
class TestASearchInTheWorld:
    @pytest.mark.slow
    def test_asks_what_the_teacher_has_shown_and_solves_with_the_right_operator(
        self, namespaces: Path, tmp_path: Path
    ) -> None:
        (case,) = chat_world.cases("held-out", 1, 0)
        tasks = chat_world.write_tasks(tmp_path / "tasks", [case])
        with ScriptedServer(Follows(case, MEANINGS[case.word])) as server:
            once = demonstration(tmp_path)._search.once
            batch = play(tasks, tmp_path / "out", flags_of("chat", tmp_path, MODEL, server.url), once)
        asked = [each["messages"] for each in server.requests if len(each["messages"]) == 6]
        shown = chat_world.demonstration(case, Random(0))
        assert [*map(bare, asked[0])] == [*map(bare, shown[:-1])]
        assert scores.read(batch) == {case.name: Played(True, 1)}

    @pytest.mark.slow
    def test_leaves_its_right_ways_to_one_arm_and_all_lines_to_the_control(
        self, namespaces: Path, tmp_path: Path
    ) -> None:
        (case,) = chat_world.cases("held-out", 1, 0)
        wrong, right = wrong_operator(case), MEANINGS[case.word]
        tasks = chat_world.write_tasks(tmp_path / "tasks", [case])
        made = demonstration(tmp_path, "workers=1")
        with ScriptedServer(Follows(case, wrong, right, wrong, right)) as server:
            batch = play(tasks, tmp_path / "out", flags_of("chat", tmp_path, MODEL, server.url), made._search)
        assert chat._first_lines(batch) == {case.name: Played(False, 1)}
        assert scores.read(batch)[case.name].solved
        searched, sampled = (
            (made._rows(arm, batch, tmp_path / arm) / "train.jsonl").read_text().splitlines() for arm in chat.ARMS
        )
        assert [case.wrong.line(right) in row for row in searched] == [True]
        assert sorted(case.wrong.line(wrong) in row for row in sampled) == [False, True]
        assert json.loads(sampled[0]).keys() == {"messages", "tools"}


def test_the_table_compares_with_the_first_and_with_the_control() -> None:
    def played(part: str, solved: int) -> dict[str, Played]:
        return {f"{part}-{n}": Played(n < solved, 1) for n in range(40)}

    told = chat.table(
        {
            "single line, tasks of round 1": played("round-1", 10),
            "search, tasks of round 1": played("round-1", 30),
            "single line, held out": played("held-out", 12),
            "after round 1, searched": played("held-out", 20),
            "after round 1, sampled": played("held-out", 10),
        }
    ).splitlines()
    assert told[2].startswith("| single line, tasks of round 1 | 40 | 0.25 [")
    assert told[3].startswith("| search, tasks of round 1 | 40 | 0.75 [")
    assert "| 0.50 [" in told[3]
    assert told[4].endswith("] |  |  |")
    assert "| 0.20 [" in told[5]
    assert "| 0.25 [" in told[5]
    assert "| -0.05 [" in told[6]
