"""Runs as files for the readers of other programs, of the same small trees as the rows of training data.

`trajectories/atif.schema.json` is what the models of harbor 0.25.0 give as their JSON schema, without its texts; what
their validators check besides is in `faults` here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from agent.actions import Edit, Observation, Shell
from agent.analysis.trajectories.reading import read_trajectory
from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.export.documents import export
from agent.models import Completion
from agent.policy.chat.dialects import TEXT
from agent.run.events import Ended
from agent.run.run import Run
from tests.exporting import Recorder, chat_tree, edit, small_tree
from tests.scripted import answer

SCHEMA = json.loads((Path(__file__).parent / "trajectories" / "atif.schema.json").read_text())
PATCH = b"diff --git a/means.py b/means.py\n"


def shell_run(folder: Path, *, stop: str = "SOLVED", patch: bool = True) -> Path:
    """A model that runs commands in two turns, one of them a failure; its answer has a patch."""
    made = Recorder(folder, policy={"name": "openai/tiny"}, sandbox={"kind": "namespace"})
    opening = [{"role": "system", "content": "Repair it."}, {"role": "user", "content": "It is broken."}]
    first = answer("Looking.", ("bash", {"command": "ls"}), ("bash", {"command": "cat nowhere"}))
    seen = (Observation("means.py\n"), Observation("no such file", ok=False))
    looked = made.asks(0, opening, first, Shell("ls"), Shell("cat nowhere"), seen=seen)
    told = [
        *opening,
        first.message,
        *({"role": "tool", "tool_call_id": f"call_{n}", "content": s.text} for n, s in enumerate(seen)),
    ]
    second = answer("Repairing.", ("edit", {"path": "means.py", "old_str": "0", "new_str": "one"}))
    repaired = made.asks(0, [*told, {"role": "user", "content": "Go on."}], second, Edit("means.py", "0", "one"))
    made.add(0, 1.0, [looked, repaired], policy_id="chat/tiny@1")
    blob = made.run.journal.put_blob(PATCH) if patch else None
    made.run.record(Ended("solved" if patch else "no_patch", stop, 1 if patch else None, patch, blob))
    made.close().close()
    return folder


def document(folder: Path, form: str, **options: str) -> dict[str, Any]:
    (path,) = export([folder], form, options, None)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def faults(trajectory: dict[str, Any]) -> Iterator[str]:
    """What harbor's validators refuse."""
    if [step["step_id"] for step in trajectory["steps"]] != list(range(1, len(trajectory["steps"]) + 1)):
        yield "steps are not numbered from 1"
    for step in trajectory["steps"]:
        agents = {"model_name", "reasoning_content", "tool_calls", "metrics"} & step.keys()
        if (agents and step["source"] != "agent") or (step.get("llm_call_count") == 0 and "metrics" in step):
            yield f"step {step['step_id']} has {agents}"
        calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        results = step.get("observation", {}).get("results", ())
        if not {result["source_call_id"] for result in results if "source_call_id" in result} <= calls:
            yield f"step {step['step_id']} has a result of no call"
    below = trajectory.get("subagent_trajectories", ())
    if len({each["trajectory_id"] for each in below}) != len(below):
        yield "two trajectories have one name"
    for each in below:
        yield from faults(each)


class TestMiniSweAgentsTrajectory:
    def test_is_read_again_as_what_was_done(self, tmp_path: Path) -> None:
        (path,) = export([shell_run(tmp_path / "means-1")], "traj", {}, None)
        assert path == tmp_path / "means-1" / "means-1.traj.json"
        found = read_trajectory(path)
        assert (found.format, found.ended, found.patch) == ("mini-swe-agent-1.1", "Submitted", PATCH.decode())
        done = [
            (each.action.command, each.seen.text, each.seen.ok)
            for each in found.action_records
            if isinstance(each.action, Shell)
        ]
        assert done == [
            ("ls", "means.py\n", True),
            ("cat nowhere", "no such file", False),
            ('edit {"path": "means.py", "old_str": "0", "new_str": "one"}', "done", True),
        ]

    def test_has_the_conversation_in_full_and_each_message_once(self, tmp_path: Path) -> None:
        made = document(shell_run(tmp_path / "run"), "traj")
        assert [message["role"] for message in made["messages"]] == [
            *("system", "user", "assistant", "tool", "tool", "user", "assistant", "tool", "exit")
        ]
        first = made["messages"][2]
        assert first["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "ls"}'}
        assert first["extra"]["actions"][0] == {"command": "ls", "tool_call_id": "call_0"}
        assert made["messages"][-1]["extra"] == {"exit_status": "Submitted", "submission": PATCH.decode()}
        assert made["info"]["config"]["model"] == {"model_name": "openai/tiny"}

    def test_of_edits_without_a_model_reads_as_a_conversation(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "run").close()
        made = document(tmp_path / "run", "traj")
        said = [
            action["command"] for message in made["messages"] for action in message.get("extra", {}).get("actions", ())
        ]
        assert [json.loads(command.removeprefix("edit "))["new_str"] for command in said] == ["one", "three"]

    @pytest.mark.parametrize(
        ("stop", "status"), [("TIME", "TimeExceeded"), ("COST", "LimitsExceeded"), ("FAILED", "Failed")]
    )
    def test_says_why_a_run_ended_without_an_answer(self, tmp_path: Path, stop: str, status: str) -> None:
        made = document(shell_run(tmp_path / "run", stop=stop, patch=False), "traj")
        assert (made["info"]["exit_status"], made["info"]["submission"]) == (status, "")

    def test_leaves_out_results_that_the_model_had_left_out_but_not_from_the_file(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        opening = [{"role": "user", "content": "Begin."}]
        first = answer("one", ("bash", {"command": "ls"}))
        second = answer("two", ("bash", {"command": "pwd"}))
        looked = made.asks(0, opening, first, Shell("ls"), seen=(Observation("a long list"),))
        short = [*opening, first.message, {"role": "tool", "tool_call_id": "call_0", "content": "(left out)"}]
        went = made.asks(0, [*short, {"role": "user", "content": "Go on."}], second, Shell("pwd"))
        made.add(0, 1.0, [looked, went], policy_id="chat/tiny@1")
        made.close().close()
        told = [message["content"] for message in document(tmp_path / "run", "traj")["messages"]]
        assert told == ["Begin.", "one", "a long list", "Go on.", "two", "done", ""]

    def test_of_a_model_without_tools_has_each_result_once(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        begin = {"role": "user", "content": "Begin."}
        told, steps = [begin], []
        for said, command in (("one", "ls"), ("two", "pwd"), ("three", "id")):
            steps.append(made.asks(0, told, Completion(said), Shell(command), seen=(Observation(f"{command}!"),)))
            results = TEXT.results(Completion(said).message, (Shell(command),), (f"{command}!",))
            told = [*told, Completion(said).message, *results]
            if said == "two":
                told[2] = {"role": "user", "content": "(left out)"}
        made.add(0, 1.0, steps, policy_id="chat/tiny@1")
        made.close().close()
        messages = document(tmp_path / "run", "traj")["messages"]
        assert [m["content"] for m in messages] == ["Begin.", "one", "ls!", "two", "pwd!", "three", "id!", ""]
        assert {m["role"] for m in messages} == {"user", "assistant", "exit"}
        deeds = read_trajectory(tmp_path / "run" / "run.traj.json").action_records
        assert [each.seen.text for each in deeds] == ["ls!", "pwd!", "id!"]


class TestAtif:
    @pytest.fixture(params=[chat_tree, small_tree, lambda folder: Run.read(shell_run(folder))])
    def made(self, request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
        request.param(tmp_path / "run").close()
        return document(tmp_path / "run", "atif")

    def test_is_what_harbors_models_take(self, made: dict[str, Any]) -> None:
        jsonschema.validate(made, SCHEMA)
        assert list(faults(made)) == []

    def test_a_key_that_harbor_does_not_know_is_noticed_here(self, made: dict[str, Any]) -> None:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**made, "tree": {}}, SCHEMA)

    def test_has_the_winning_path_first_and_the_others_below_it(self, tmp_path: Path) -> None:
        chat_tree(tmp_path / "run").close()
        made = document(tmp_path / "run", "atif")
        (other,) = made["subagent_trajectories"]
        assert [step["message"] for step in made["steps"][2:4]] == ["Looking.", "right"]
        assert [step["message"] for step in other["steps"][2:]] == ["Looking.", "wrong"]
        named = made["steps"][-1]["observation"]["results"][0]["subagent_trajectory_ref"]
        assert named == [{"trajectory_id": other["trajectory_id"]}]

    def test_marks_what_a_rollout_shares_with_one_before_it(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "run").close()
        made = document(tmp_path / "run", "atif")
        shared = {
            (call["arguments"]["new_str"], bool(step.get("is_copied_context")))
            for each in (made, *made["subagent_trajectories"])
            for step in each["steps"]
            for call in step.get("tool_calls", ())
        }
        assert shared == {("one", False), ("three", False), ("two", False), ("one", True), ("four", False)}

    def test_shows_as_many_other_rollouts_as_are_wanted(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "run").close()
        assert len(document(tmp_path / "run", "atif", others="1")["subagent_trajectories"]) == 1
        with pytest.raises(UsageError, match="others=-1"):
            document(tmp_path / "run", "atif", others="-1")


def test_keys_are_in_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2")
    made = Recorder(tmp_path / "run", model={"body": {"key": "hunter2-hunter2"}})
    made.add(0, 1.0, [replace(edit("hunter2-hunter2"), message="my key is ghp_abcdefghijklmnopqrstuvwxyz0123")])
    made.close().close()
    for form in ("traj", "atif"):
        (path,) = export([tmp_path / "run"], form, {}, tmp_path / form)
        assert "hunter2" not in path.read_text()
        assert "ghp_abc" not in path.read_text()
        assert "[SOME_API_KEY]" in path.read_text()


def test_the_directory_that_one_is_in_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell_run(tmp_path / "means-1")
    monkeypatch.chdir(tmp_path / "means-1")
    assert export([Path()], "traj", {}, None) == [tmp_path / "means-1" / "means-1.traj.json"]
    assert document(Path(), "atif")["session_id"] == "means-1"


def test_a_batch_gets_a_file_an_instance_and_none_where_nothing_was_tried(tmp_path: Path) -> None:
    for name in "ab":
        small_tree(tmp_path / "batch" / name).close()
    Recorder(tmp_path / "batch" / "c").close().close()
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["export", str(tmp_path / "batch"), "--format", "traj", "--out", str(out)])
    assert done.stdout.splitlines() == [f"{out}/a/a.traj.json", f"{out}/b/b.traj.json"]
    assert "traj  " in CliRunner().invoke(app, ["export", "--list"]).stdout


def test_an_unknown_format_is_named_with_all_that_there_are(tmp_path: Path) -> None:
    failed = CliRunner().invoke(app, ["export", str(tmp_path), "--format", "mini", "--out", str(tmp_path / "out")])
    assert "unknown format 'mini': one of sft, " in str(failed.exception)
    assert str(failed.exception).endswith("traj, atif")


def test_options_of_rows_are_refused(tmp_path: Path) -> None:
    small_tree(tmp_path / "run").close()
    failed = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--format", "atif", "--parquet"])
    assert "formats of rows" in str(failed.exception)
