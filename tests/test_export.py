"""Exports: rows that are worked out by hand, of trees small enough for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit, Observation, RunTests, View
from agent.budget import Budget
from agent.cli.app import app
from agent.engine.components import Components
from agent.errors import UsageError
from agent.evaluate.value.tests import PassingTests
from agent.learning.export import Row
from agent.learning.export.licences import licence_of
from agent.learning.export.registry import FORMATS, construct, make
from agent.learning.export.turns import as_template
from agent.models import Completion, ToolCall
from agent.policy.chat.dialects import NATIVE, TEXT
from agent.policy.chat.policy import ChatPolicy
from agent.policy.chat.transcript import pack
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.search.linear import Linear
from agent.solver.solve import solve
from sandboxes import Provider, Workspace
from tests.clients import Client, Serve
from tests.exporting import TASK, Recorder, chat_tree, edit, failing_call, rows, said, small_tree
from tests.projects import BUG, FIX, means, task
from tests.scripted import answer
from tests.scripted_server import says


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with small_tree(tmp_path_factory.mktemp("small") / "run") as run:
        yield run


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with chat_tree(tmp_path_factory.mktemp("chat") / "run") as run:
        yield run


def spoken(messages):
    return [(message["role"], said(message)) for message in messages if message["role"] != "system"]


class TestWinningPaths:
    def test_are_the_turns_from_the_root_to_a_solved_state(self, chat: Run) -> None:
        (row,) = rows(chat, "sft")
        assert spoken(row["messages"]) == [
            ("user", "It is broken."),
            ("assistant", "x"),
            ("tool", "done"),
            ("assistant", "right"),
        ]
        assert row["tools"][0]["function"]["name"] == "edit"
        assert not any("train" in message for message in row["messages"])

    def test_with_a_call_that_could_not_be_read_are_those_of_the_recorded_answer(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        bad, good = ToolCall("1", "look.at", "{"), ToolCall("2", "edit", '{"path": "a", "old_str": "", "new_str": "x"}')
        reply = NATIVE.parse(said_both := Completion("So.", (bad, good)))
        seen = (Observation("Not done: no", ok=False), Observation("done"))
        step = made.asks(0, [{"role": "user", "content": "Begin."}], said_both, *reply.actions, seen=seen)
        made.add(0, 1.0, [replace(step, message=pack([], reply.message))], policy_id="chat/tiny@1")
        with made.close() as run:
            (row,) = rows(run, "sft")
        assert row["tools"][0]["function"]["name"] == "edit"
        calls = [call["function"] for call in row["messages"][1]["tool_calls"]]
        assert [(call["name"], call["arguments"].get("path")) for call in calls] == [("look_at", None), ("edit", "a")]

    def test_have_arguments_of_calls_as_objects(self, chat: Run) -> None:
        (row,) = rows(chat, "sft")
        calls = [call["function"]["arguments"] for m in row["messages"] for call in m.get("tool_calls", ())]
        assert calls == [
            {"path": "a", "old_str": "", "new_str": "x"},
            {"path": "a", "old_str": "x", "new_str": "right"},
            {},
        ]

    def test_of_edits_without_a_model_read_as_a_conversation(self, small: Run) -> None:
        (row,) = rows(small, "sft")
        assert [message["role"] for message in row["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "user",
            "assistant",
        ]
        assert "mean([]) divides by zero" in row["messages"][1]["content"]
        assert "Still failing: t.py::a" in row["messages"][4]["content"]
        assert [said(m) for m in row["messages"] if m["role"] == "assistant"] == ["one", "three"]
        assert row["provenance"]["nodes"] == [0, 1, 3]
        assert not row["provenance"]["exact"]

    def test_that_were_refuted_are_none(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [edit("a")])
        made.note(1, "verdict", {"solved": False, "patch": None})
        with made.close() as run:
            assert rows(run, "sft") == [{"skipped": "no rollout of the run succeeded"}]

    def test_train_a_turn_that_they_share_once(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [edit("shared")])
        made.add(1, 1.0, [edit("a")])
        made.add(1, 1.0, [edit("b")])
        with made.close() as run:
            first, second = rows(run, "sft")
        on = [
            [(said(m), m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"]
            for row in (first, second)
        ]
        assert on == [[("shared", True), ("a", True)], [("shared", False), ("b", True)]]

    def test_mask_the_turns_in_which_a_call_failed(self, tmp_path: Path) -> None:
        with failing_call(tmp_path) as run:
            (row,) = rows(run, "sft-masked")
        on = [(said(m), m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"]
        assert on == [("bad", False), ("good", True)]

    def test_a_test_that_fails_is_no_failed_call(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [Step((RunTests(),), (Observation("1 failed", ok=False),)), edit("good")])
        with made.close() as run:
            (row,) = rows(run, "sft-masked")
        assert not any("train" in message for message in row["messages"])

    def test_begin_anew_where_the_prompt_does_not_go_on_from_what_was_said(self, tmp_path: Path) -> None:
        """The third turn was told without the result of the first, as in a conversation that grew too long."""
        made = Recorder(tmp_path)
        prompt: list[Any] = [{"role": "user", "content": "It is broken."}]
        turns = []
        for text in "xyz":
            if text == "z":
                prompt[2] = {**prompt[2], "content": "left out"}
            given = answer(text, ("edit", {"path": "a", "old_str": "", "new_str": text}))
            turns.append(made.asks(0, prompt, given, Edit("a", "", text)))
            prompt = [*prompt, given.message, {"role": "tool", "tool_call_id": "call_0", "content": "done"}]
        made.add(0, 1.0, turns)
        with made.close() as run:
            one, two = rows(run, "sft")
        assert [said(m) for m in one["messages"]] == ["It is broken.", "x", "done", "y"]
        on = [(said(m), m.get("train", True)) for m in two["messages"] if m["role"] == "assistant"]
        assert on == [("x", False), ("y", False), ("z", True)]
        assert two["messages"][2]["content"] == "left out"

    def test_of_a_model_without_tool_calls_have_its_calls_and_their_results_in_words(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        opening = {"role": "user", "content": "It is broken."}
        texts = [
            TEXT.render_turn("0", "Looking.", [View("a")])["content"],
            TEXT.render_turn("1", "So.", [Edit("a", "x", "y")])["content"],
        ]
        first = made.asks(0, [opening], answer(texts[0]), View("a"), seen=[Observation("It says x.")], tools=[])
        told = [opening, {"role": "assistant", "content": texts[0]}, {"role": "user", "content": "It says x."}]
        second = made.asks(0, told, answer(texts[1]), Edit("a", "x", "y"), tools=[])
        made.add(0, 1.0, [first, second])
        with made.close() as run:
            (row,) = rows(run, "sft")
            (whole,) = rows(run, "trajectories")
        assert [m["content"] for m in row["messages"]] == ["It is broken.", texts[0], "It says x.", texts[1]]
        assert row["tools"] == []
        assert (whole["messages"][-1]["role"], "done" in whole["messages"][-1]["content"]) == ("user", True)

    def test_of_several_policies_go_on_from_what_was_said_before(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        opening = [{"role": "user", "content": "It is broken."}]
        given = answer("Perhaps.", ("edit", {"path": "a", "old_str": "", "new_str": "by a model"}))
        step = made.asks(0, opening, given, Edit("a", "", "by a model"))
        made.add(0, 0.3, [step], notes="Still failing: t.py::a", policy_id="chat/tiny@1")
        made.add(1, 1.0, [edit("by mutate")])
        with made.close() as run:
            (row,) = rows(run, "sft")
        assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool", "user", "assistant"]
        assert [said(m) for m in row["messages"] if m["role"] == "assistant"] == ["by a model", "by mutate"]
        assert row["provenance"]["policies"] == ["chat/tiny@1", "mutate/1"]


class TestProvenance:
    def test_guesses_the_licence_from_the_text_in_the_workspace_and_says_so(self, tmp_path: Path) -> None:
        task = replace(TASK, tags={}, workspace=Workspace(path=tmp_path))
        assert licence_of(task) == ("unknown", "")
        (tmp_path / "COPYING.txt").write_text("Apache License\n      Version 2.0, January 2004\n")
        assert licence_of(task) == ("Apache-2.0", "workspace")
        assert licence_of(replace(task, tags={"license": "0BSD"})) == ("0BSD", "task")

    @pytest.mark.parametrize("name", ["license.txt", "License.md", "LICENCE"])
    def test_finds_the_licence_however_its_file_is_written(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("Permission is hereby granted, free of charge, to any person obtaining a copy")
        assert licence_of(replace(TASK, tags={}, workspace=Workspace(path=tmp_path))) == ("MIT", "workspace")

    def test_says_where_a_row_comes_from_and_how_it_was_drawn(self, chat: Run) -> None:
        (row,) = rows(chat, "sft")
        told = row["provenance"]
        assert (told["run"], told["task"], told["repository"], told["base"]) == (
            "run",
            "means-1",
            "someone/means",
            "c0ffee",
        )
        assert (told["license"], told["license_source"], told["source"]) == ("MIT", "task", "https://example.org/means")
        assert (told["node"], told["nodes"], told["policies"], told["models"]) == (1, [0, 1], ["chat/tiny@1"], ["tiny"])
        assert (told["seed"], told["sampling"], told["exact"]) == (7, [{"seed": 3}, {"seed": 3}], True)
        assert told["logprobs"] == [None, [-0.5, -0.25]]
        assert told["prompts"] == [asked.conversation.digest for asked in chat.asked[:2]]

    @pytest.mark.parametrize(("form", "exact", "logprobs"), [("kto", True, [[-0.5]]), ("lookahead", False, [None])])
    def test_has_no_log_probability_of_words_that_no_model_said(
        self, tmp_path: Path, form: str, exact: bool, logprobs: list[Any]
    ) -> None:
        made = Recorder(tmp_path)
        for value, new in ((1.0, "right"), (0.1, "wrong")):
            said = replace(answer(new, ("edit", {"path": "a", "old_str": "", "new_str": new})), logprobs=(-0.5,))
            made.add(0, value, [made.asks(0, [{"role": "user", "content": "Begin."}], said, Edit("a", "", new))])
        with made.close() as run:
            told = rows(run, form)[0]["provenance"]
        assert (told["exact"], told["logprobs"]) == (exact, logprobs)


class TestSiblingPairs:
    def test_are_those_whose_values_are_further_apart_than_the_gap(self, small: Run) -> None:
        """Q of 1 is (0.3 + 1.0 + 0.1) / 3 = 0.467 and of 2 is 0.1: apart by 0.367. Of 3 it is 1.0, of 4 it is 0.1."""
        found = rows(small, "preference", gap=0.36)
        assert [(said(r["chosen"][0]), said(r["rejected"][0])) for r in found] == [("one", "two"), ("three", "four")]
        assert [row["margin"] for row in found] == pytest.approx([1.4 / 3 - 0.1, 0.9])
        assert [row["visits"] for row in found] == [[3, 1], [1, 1]]
        assert [r["margin"] for r in rows(small, "preference", gap=0.37)] == pytest.approx([0.9])

    def test_of_success_are_its_step_over_each_sibling_without_one(self, small: Run) -> None:
        found = rows(small, "preference", pairs="success", gap=1.0)
        assert [(said(r["chosen"][0]), said(r["rejected"][0])) for r in found] == [("one", "two"), ("three", "four")]

    def test_of_success_are_none_in_a_tree_without_one(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.9, [edit("a")])
        made.add(0, 0.1, [edit("b")])
        with made.close() as run:
            assert rows(run, "preference", pairs="success") == [
                {"skipped": "no two siblings of the tree differ in worth"}
            ]

    def test_go_by_the_search_the_critic_or_both(self, tmp_path: Path) -> None:
        """Q says 0.8 and 0.2, the critic 0.1 and 0.9: half of each is 0.45 and 0.55."""
        made = Recorder(tmp_path)
        for q, critic in ((0.8, 0.1), (0.2, 0.9)):
            number = len(made.run.tree)
            evaluation = replace(made.run.tree[0].evaluation, value=q, parts={"judge": critic})
            made.add(0, q, [edit(f"e{number}")], evaluation=evaluation)
        with made.close() as run:
            for mix, chosen, margin in ((1.0, "e1", 0.6), (0.0, "e2", 0.8), (0.5, "e2", 0.1)):
                (row,) = rows(run, "preference", mix=mix, gap=0.05)
                assert (said(row["chosen"][0]), row["margin"]) == (chosen, pytest.approx(margin))

    def test_part_at_the_first_turn_that_differs_and_share_all_before_it(self, chat: Run) -> None:
        (row,) = rows(chat, "preference")
        assert spoken(row["prompt"]) == [("user", "It is broken."), ("assistant", "x"), ("tool", "done")]
        assert [[said(m) for m in row[key]] for key in ("chosen", "rejected")] == [["right"], ["wrong"]]

    def test_may_part_after_a_call_that_the_server_gave_two_ids(self, tmp_path: Path) -> None:
        made, opening = Recorder(tmp_path), [{"role": "user", "content": "It is broken."}]
        for value, new in ((1.0, "right"), (0.1, "wrong")):
            look = answer("Looking.", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
            look = replace(look, tool_calls=(replace(look.tool_calls[0], id=f"drawn-{new}"),))
            looked = [*opening, look.message, {"role": "tool", "tool_call_id": f"drawn-{new}", "content": "done"}]
            then = made.asks(
                0, looked, answer(new, ("edit", {"path": "a", "old_str": "x", "new_str": new})), Edit("a", "x", new)
            )
            made.add(0, value, [made.asks(0, opening, look, Edit("a", "", "x")), then])
        with made.close() as run:
            (row,) = rows(run, "preference")
        assert spoken(row["prompt"]) == [("user", "It is broken."), ("assistant", "x"), ("tool", "done")]
        assert (said(row["chosen"][0]), said(row["rejected"][0])) == ("right", "wrong")
        assert not row["provenance"]["exact"]

    def test_that_were_not_asked_the_same_are_refused(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        for value, told in ((1.0, "Begin."), (0.1, "Begin, and do something else than before.")):
            said = answer("ok", ("edit", {"path": "a", "old_str": "", "new_str": told}))
            made.add(0, value, [made.asks(0, [{"role": "user", "content": told}], said, Edit("a", "", told))])
        with made.close() as run:
            assert rows(run, "preference") == [{"skipped": "the siblings did not have the same prompt and tools"}]
            assert rows(run, "preference", prompts="any") == [
                {"skipped": "the siblings did not have the same prompt and tools"}
            ]

    def test_may_be_of_siblings_one_of_which_was_told_more_at_the_end(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        told = [{"role": "user", "content": text} for text in ("Begin.", "Others tried this.")]
        for value, count in ((0.1, 1), (1.0, 2)):
            said = answer(f"after {count}", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
            made.add(0, value, [made.asks(0, told[:count], said, Edit("a", "", "x"))])
        with made.close() as run:
            assert rows(run, "preference") == [{"skipped": "the siblings did not have the same prompt and tools"}]
            (row,) = rows(run, "preference", prompts="any")
        assert (row["prompt"], row["chosen"][0]["content"]) == (told[:1], "after 2")
        assert not row["provenance"]["exact"]

    def test_are_those_of_the_largest_margins_where_there_are_too_many(self, tmp_path: Path) -> None:
        """Of 0.9 and 0.5, 0.1 and 0.0 the largest margins are 0.9, 0.8 and 0.5."""
        made = Recorder(tmp_path)
        for value in (0.5, 0.9, 0.0, 0.1):
            made.add(0, value, [edit(f"e{value}")])
        with made.close() as run:
            found = rows(run, "preference", most=3)
        assert [row["margin"] for row in found if "margin" in row] == pytest.approx([0.5, 0.9, 0.8])
        assert {row["skipped"] for row in found if "skipped" in row} == {
            "its tree has enough pairs (option `max_pairs`)"
        }

    def test_that_did_the_same_are_refused(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [edit("same")])
        made.add(0, 0.1, [edit("same")])
        with made.close() as run:
            assert rows(run, "preference") == [{"skipped": "the siblings gave the same answers"}]


class TestPairsOfSeveralRuns:
    """The model is asked the same in three runs of a task; the answers are worth 1.0, 0.1 and 0.6."""

    @pytest.fixture
    def runs(self, tmp_path: Path) -> list[Path]:
        opening = [{"role": "user", "content": "It is broken."}]
        for name, worth in (("best", 1.0), ("worst", 0.1), ("middling", 0.6)):
            made = Recorder(tmp_path / name)
            for _ in range(3 if name == "worst" else 0):
                made.add(0, 0.1, [edit("elsewhere")])
            said = answer(name, ("edit", {"path": "a", "old_str": "", "new_str": name}))
            policy = f"chat/tiny@{name}"
            made.add(0, worth, [made.asks(0, opening, said, Edit("a", "", name))], policy_id=policy)
            made.close().close()
        return [tmp_path / name for name in ("best", "worst", "middling")]

    def exported(self, runs: list[Path], out: Path, *more: str, form: str = "preference") -> list[Row]:
        argv = ["export", *map(str, runs), "--format", form, "--out", str(out), *more]
        assert CliRunner().invoke(app, argv, catch_exceptions=False).exit_code == 0
        return [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]

    def test_are_of_the_best_answer_of_a_run_and_the_worst_of_the_others_to_one_prompt(
        self, runs: list[Path], tmp_path: Path
    ) -> None:
        found = self.exported(runs, tmp_path / "rows", "--set", "runs=all")
        assert [(row["chosen"][0]["content"], row["rejected"][0]["content"], row["other"]) for row in found] == [
            ("best", "worst", "worst"),
            ("middling", "worst", "worst"),
        ]
        assert [row["prompt"] for row in found] == [[{"role": "user", "content": "It is broken."}]] * 2
        assert [row["margin"] for row in found] == pytest.approx([0.9, 0.5])
        assert found[0]["provenance"]["run"] == "best"

    def test_are_not_there_unless_they_are_asked_for_or_the_answers_are_too_near(
        self, runs: list[Path], tmp_path: Path
    ) -> None:
        with pytest.raises(UsageError, match="nothing was written to"):
            self.exported(runs, tmp_path / "one")
        near = self.exported(runs, tmp_path / "near", "--set", "runs=all", "--set", "gap=0.6")
        assert [row["chosen"][0]["content"] for row in near] == ["best"]

    def test_are_there_in_the_format_of_openai_too(self, runs: list[Path], tmp_path: Path) -> None:
        found = self.exported(runs, tmp_path / "rows", "--set", "runs=all", form="openai-preference")
        assert [row["preferred_output"][0]["content"] for row in found] == ["best", "middling"]


class TestStepValues:
    def test_are_the_mean_outcome_of_the_leaves_below(self, small: Run) -> None:
        """Of the leaves 2, 3 and 4 only 3 is solved; 3 and 4 are below 1."""
        found = rows(small, "prm")
        told = [(r["provenance"]["node"], r["value"], r["leaves"], r["solved"], r["depth"]) for r in found]
        assert told == [(1, 0.5, 2, 1, 1), (2, 0.0, 1, 0, 1), (3, 1.0, 1, 1, 2), (4, 0.0, 1, 0, 2)]
        assert [row["q"] for row in found] == pytest.approx([1.4 / 3, 0.1, 1.0, 0.1])

    def test_may_be_of_the_leaves_values(self, small: Run) -> None:
        """1 is the mean of 1.0 and 0.1."""
        assert [row["value"] for row in rows(small, "prm", outcome="value")] == pytest.approx([0.55, 0.1, 1.0, 0.1])

    def test_have_all_that_was_said_on_the_way_to_the_state(self, chat: Run) -> None:
        row = rows(chat, "prm")[0]
        assert spoken(row["prompt"]) == [("user", "It is broken.")]
        assert spoken(row["completion"]) == [("assistant", "x"), ("tool", "done"), ("assistant", "right")]


class TestFormats:
    def test_an_unknown_one_is_named_with_those_there_are(self) -> None:
        with pytest.raises(UsageError, match=r"unknown format 'sft2': one of sft, "):
            make("sft2", {})

    def test_an_unknown_option_is_named_with_those_there_are(self) -> None:
        with pytest.raises(UsageError, match=r"preference has no option 'gab': it has pairs, gap, mix, visits"):
            make("preference", {"gab": "0.1"})

    def test_the_names_that_options_had_in_earlier_versions_are_understood(self) -> None:
        made = construct(FORMATS["preference"], "preference", {"told": "any", "most": "3"})
        assert (made.prompts, made.max_pairs) == ("any", 3)

    @pytest.mark.parametrize(("key", "value"), [("gap", "2"), ("mix", "-1"), ("pairs", "all")])
    def test_an_option_out_of_its_range_is_refused(self, key: str, value: str) -> None:
        with pytest.raises(UsageError, match=value):
            make("preference", {key: value})

    @pytest.mark.parametrize(
        ("form", "key", "value", "wanted"),
        [
            ("preference", "gap", "wide", "a valid number"),
            ("preference", "max_pairs", "1.5", "a valid integer"),
            ("sft", "mask_errors", "1", "a valid boolean"),
            ("prm", "outcome", "best", "'solved' or 'value'"),
            ("grpo-tree", "outcome", "3", "'solved' or 'value'"),
        ],
    )
    def test_an_option_of_another_type_is_refused(self, form: str, key: str, value: str, wanted: str) -> None:
        with pytest.raises(UsageError, match=rf"--set {key}={value}: it should be {wanted}"):
            make(form, {key: value})

    @pytest.mark.parametrize("name", FORMATS)
    def test_every_one_gives_rows_that_are_json_with_their_provenance(self, name: str, small: Run, chat: Run) -> None:
        for run in (small, chat):
            for row in rows(run, name):
                assert json.loads(json.dumps(row)) == row
                assert "skipped" in row or row["provenance"]["task"] == "means-1"


def test_answers_that_are_alike_belong_to_the_turn_that_was_told_the_same(tmp_path: Path) -> None:
    """Two siblings give the same answer, the second after it was told of the first."""
    made = Recorder(tmp_path)
    said = answer("same", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
    steps = []
    for told in ("Begin.", "Others tried."):
        step = made.asks(0, [{"role": "user", "content": told}], said, Edit("a", "", "x"), seen=[Observation(told)])
        packed = json.loads(step.message) | {"given": [{"role": "user", "content": told}]}
        steps.append(replace(step, message=json.dumps(packed)))
    made.add(0, 0.1, [steps[1]])
    made.add(0, 0.2, [steps[0]])
    with made.close() as run:
        found = rows(run, "prm")
    assert [row["prompt"][0]["content"] for row in found] == ["Others tried.", "Begin."]


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_of_a_real_server_gives_the_conversations_that_the_server_was_sent(
    tmp_path: Path, serve: Serve, client: Client, provider: Provider
) -> None:
    wrong = BUG.replace("< 0", "< -1")
    script = [
        says("I think it is fine."),
        says("Looking.", ("view", {"path": "means.py"}), logprobs=(-0.5,)),
        says("a", ("edit", {"path": "means.py", "old_str": BUG, "new_str": wrong}), ("run_tests", {})),
        says("b", ("edit", {"path": "means.py", "old_str": wrong, "new_str": FIX}), ("run_tests", {})),
    ]
    server = serve(script)
    with Run.open(tmp_path / "run") as run:
        parts = Components(provider, ChatPolicy(client(server)), Linear(), PassingTests(), Budget(), baseline_runs=1)
        assert solve(task(means(tmp_path / "repo")), parts, run).status == "solved"
        mended, rest = rows(run, "sft")
    _, second, _, last = (request["messages"] for request in server.requests)
    assert [as_sent(message) for message in mended["messages"][:-1]] == second
    assert [as_sent(message) for message in rest["messages"][:-1]] == last
    assert rest["tools"] == server.requests[0]["tools"]
    on = [
        [(m["content"], m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"]
        for row in (mended, rest)
    ]
    assert on == [[("I think it is fine.", False), ("Looking.", True)], [("Looking.", False), ("a", True), ("b", True)]]
    assert (mended["provenance"]["exact"], mended["provenance"]["logprobs"]) == (True, [[-0.5]])


def test_reasoning_that_only_its_model_can_read_is_nobodys_lesson():
    said = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    secret = {"response_items": [{"encrypted_content": "gAAAA"}], "reasoning_by": "openai/gpt-5"}
    assert as_template([said | secret, said]) == (said, said)


def as_sent(message):
    """Without the mark of the loss, and with arguments as text."""
    bare = {key: value for key, value in message.items() if key != "train"}
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return bare | ({"tool_calls": calls} if calls else {})
