"""Trainings are checked before they are begun, serving is a command line and a process that is waited for."""

from __future__ import annotations

import fcntl
import json
import random
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.actions import Edit
from agent.cli.app import app
from agent.cli.doctor.model_probe import examine_model
from agent.errors import ConfigError, UsageError
from agent.learning import serving, training
from agent.learning.export import NeedsAllRuns
from agent.learning.export.edits import Edits
from agent.learning.export.registry import make
from agent.learning.training import TrainingFailed, TrainingSettings, job, plan, templates, train, with_adapter
from agent.policy.edit.context import Context
from agent.policy.edit.counts import Counts
from agent.policy.edit.record import Entry, Ranked, key
from agent.run.events import Noted
from agent.run.message_store import digest_of
from tests.clients import comes_true
from tests.histories import History, P, turn
from tests.scripted_server import Reply, ScriptedServer, fails, says, scores

runner = CliRunner()


def exported(folder: Path, form: str = "edit", policies: tuple[str, ...] = ("edit/1/mutate",), rows: int = 1) -> Path:
    """A folder as `ramify export` writes it, as far as a training looks at it."""
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(
        json.dumps({"format": form, "counts": {"policy": dict.fromkeys(policies, 1)}})
    )
    if rows:
        (folder / "train.jsonl").write_text("{}\n" * rows)
    return folder


def checkpoint(folder: Path) -> TrainingSettings:
    (folder / "config.json").write_text("{}")
    return TrainingSettings(str(folder))


class TestAPlan:
    def test_says_all_that_the_training_depends_on(self, tmp_path: Path) -> None:
        folder = exported(tmp_path / "a")
        (folder / "validation.jsonl").write_text("{}\n")
        order = plan("sft", [folder], replace(checkpoint(tmp_path), lora=8, seed=3)).spec()
        assert order["files"] == [str(folder / "train.jsonl")]
        assert order["validation"] == [str(folder / "validation.jsonl")]
        assert (order["method"], order["lora"], order["seed"]) == ("sft", 8, 3)
        assert order["policies"] == ["edit/1/mutate"]
        assert not order["assistant_only"]

    def test_is_another_one_where_the_same_folder_holds_other_rows(self, tmp_path: Path) -> None:
        folder = exported(tmp_path / "a")
        before = plan("sft", [folder], TrainingSettings()).spec()
        (folder / "manifest.json").write_text((folder / "manifest.json").read_text() + "\n")
        assert plan("sft", [folder], TrainingSettings()).spec() != before

    def test_is_another_one_where_rows_were_changed_by_hand(self, tmp_path: Path) -> None:
        folder = exported(tmp_path / "a", rows=2)
        before = plan("sft", [folder], TrainingSettings()).spec()
        (folder / "train.jsonl").write_text("{}\n")
        assert plan("sft", [folder], TrainingSettings()).spec() != before

    def test_is_another_one_where_the_checkpoint_is(self, tmp_path: Path) -> None:
        folder, wanted, weights = exported(tmp_path / "a"), checkpoint(tmp_path), tmp_path / "model.safetensors"
        orders = []
        for value in (b"a", b"b"):
            weights.write_bytes(value * (3 << 20))
            orders.append(plan("sft", [folder], wanted).spec())
        assert orders[0] != orders[1] == plan("sft", [folder], wanted).spec()

    @pytest.mark.parametrize(
        ("wanted", "said"),
        [
            (TrainingSettings(lora=8), "--lora 8: .* give --model DIR"),
            (TrainingSettings(epochs=0), "--epochs 0: nothing would be learned"),
            (TrainingSettings(rate=-1e-4), "--rate -0.0001: nothing would be learned"),
        ],
    )
    def test_refuses_settings_with_which_nothing_is_learned(
        self, tmp_path: Path, wanted: TrainingSettings, said: str
    ) -> None:
        with pytest.raises(UsageError, match=said):
            plan("sft", [exported(tmp_path / "a")], wanted)

    def test_of_a_chat_model_is_of_an_adapter_where_peft_is_there(self, tmp_path: Path) -> None:
        there, not_there = tmp_path / "there", tmp_path / "not-there"
        for path, code in ((there, 0), (not_there, 1)):
            path.write_text(f"#!/bin/sh\nexit {code}\n")
            path.chmod(0o755)
        chat, edits = exported(tmp_path / "chat", "sft"), exported(tmp_path / "edits")
        wanted = checkpoint(tmp_path)
        assert with_adapter(plan("sft", [chat], wanted), there).settings.lora == 16
        assert with_adapter(plan("sft", [chat], wanted), not_there).settings.lora == 0
        assert with_adapter(plan("sft", [edits], wanted), there).settings.lora == 0

    def test_is_not_of_an_adapter_and_of_all_weights_at_once(self, tmp_path: Path) -> None:
        argv = ["train", "sft", str(exported(tmp_path / "a")), "--out", str(tmp_path / "out"), "--full", "--lora", "8"]
        assert "--full and --lora 8" in str(runner.invoke(app, argv).exception)

    def test_learns_the_assistant_s_turns_of_whole_conversations(self, tmp_path: Path) -> None:
        assert plan("sft", [exported(tmp_path / "a", "sft")], checkpoint(tmp_path)).spec()["assistant_only"]

    def test_refuses_rows_of_several_policies_unless_told(self, tmp_path: Path) -> None:
        folders = [exported(tmp_path / name, "preference", (f"chat/{name}",)) for name in "ab"]
        with pytest.raises(UsageError, match=r"2 policies \(chat/a, chat/b\).*--mix-policies"):
            plan("dpo", folders, checkpoint(tmp_path))
        assert plan("dpo", folders, checkpoint(tmp_path), mix_policies=True).spec()["policies"] == ["chat/a", "chat/b"]

    @pytest.mark.parametrize(
        ("method", "form", "said"),
        [
            ("dpo", "edit", "rows of the format edit; dpo takes preference, edit-preference"),
            ("sft", "kto", "rows of the format kto; sft takes"),
        ],
    )
    def test_refuses_rows_that_the_method_does_not_take(
        self, tmp_path: Path, method: training.Method, form: str, said: str
    ) -> None:
        with pytest.raises(UsageError, match=said):
            plan(method, [exported(tmp_path / "a", form)], TrainingSettings())

    def test_refuses_to_mix_whole_conversations_and_single_answers(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="different shapes"):
            plan("sft", [exported(tmp_path / "a", "sft"), exported(tmp_path / "b", "edit")], TrainingSettings())

    def test_refuses_to_teach_conversations_to_a_model_from_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="rows of the format sft give --model DIR"):
            plan("sft", [exported(tmp_path / "a", "sft"), exported(tmp_path / "b", "trajectories")], TrainingSettings())

    def test_refuses_a_row_at_a_time_where_trl_does(self, tmp_path: Path) -> None:
        wanted = replace(checkpoint(tmp_path), batch=1)
        with pytest.raises(UsageError, match="at least 2 rows at a time"):
            plan("grpo", [exported(tmp_path / "a", "grpo-tree")], wanted)

    def test_refuses_two_orders_of_rows(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="--in-order and --group-by-length: only one of them can order the rows"):
            plan("sft", [exported(tmp_path / "a")], TrainingSettings(group_by_length=True, in_order=True))

    def test_refuses_another_order_of_rows_where_trl_does(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="KTO needs the rows in their own order"):
            plan("kto", [exported(tmp_path / "kto", "kto")], TrainingSettings(group_by_length=True))

    def test_refuses_folders_without_rows_and_models_without_weights(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no readable manifest\.json"):
            plan("sft", [tmp_path], TrainingSettings())
        with pytest.raises(UsageError, match="there is nothing to train on"):
            plan("sft", [exported(tmp_path / "a", rows=0)], TrainingSettings())
        (tmp_path / "a" / "train.jsonl").touch()
        with pytest.raises(UsageError, match="there is nothing to train on"):
            plan("sft", [tmp_path / "a"], TrainingSettings())
        with pytest.raises(UsageError, match="is not a folder with a checkpoint"):
            plan("sft", [exported(tmp_path / "b")], TrainingSettings(model=str(tmp_path)))
        with pytest.raises(UsageError, match="is not a folder with a checkpoint"):
            plan("sft", [tmp_path / "b"], TrainingSettings(model=str(tmp_path / "nowhere")))


def program(path: Path, text: str) -> Path:
    """Something that stands where an interpreter is expected."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class TestATraining:
    WRITES = """
import pathlib, sys
out = pathlib.Path(sys.argv[2]).parent
print("loss 0.5")
(out / "model").mkdir(exist_ok=True)
(out / "metrics.json").write_text('{"steps": 2}')
"""
    LASTS = """
import pathlib, sys, time
pathlib.Path(sys.argv[2]).with_name("begun").touch()
time.sleep(1000)
"""

    def test_is_a_program_in_another_environment(self, tmp_path: Path) -> None:
        chosen = plan("sft", [exported(tmp_path / "a")], TrainingSettings())
        metrics = train(chosen, tmp_path / "out", python=program(tmp_path / "python", self.WRITES))
        assert metrics == {"steps": 2}
        assert json.loads((tmp_path / "out" / "order.json").read_text()) == chosen.spec()

    def test_goes_on_with_the_same_order_and_refuses_another(self, tmp_path: Path) -> None:
        python, folder = program(tmp_path / "python", self.WRITES), exported(tmp_path / "a")
        for _ in range(2):
            train(plan("sft", [folder], TrainingSettings()), tmp_path / "out", python=python)
        with pytest.raises(UsageError, match="holds another training"):
            train(plan("sft", [folder], TrainingSettings(seed=1)), tmp_path / "out", python=python)

    def test_that_has_come_to_its_end_is_not_run_again(self, tmp_path: Path) -> None:
        chosen = plan("sft", [exported(tmp_path / "a")], TrainingSettings())
        train(chosen, tmp_path / "out", python=program(tmp_path / "python", self.WRITES))
        assert train(chosen, tmp_path / "out", python=tmp_path / "none") == {"steps": 2}

    def test_ends_when_a_signal_ends_who_began_it(self, tmp_path: Path) -> None:
        """Otherwise the same command would begin another one in the same folder."""
        python, out = program(tmp_path / "python", self.LASTS), tmp_path / "out"
        argv = [sys.executable, "-m", "agent", "train", "sft", str(exported(tmp_path / "a")), "--out", str(out)]
        with subprocess.Popen([*argv, "--python", str(python)]) as training:
            assert comes_true((out / "begun").exists)
            with pytest.raises(UsageError, match="another process is training in"):
                train(plan("sft", [tmp_path / "a"], TrainingSettings()), out, python=python)
            training.terminate()
            assert training.wait(100) == 143
        with (out / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_says_what_it_does_on_stderr(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        chosen = plan("sft", [exported(tmp_path / "a")], TrainingSettings())
        train(chosen, tmp_path / "out", python=program(tmp_path / "python", self.WRITES))
        assert capfd.readouterr() == ("", "loss 0.5\n")

    def test_of_a_row_that_cannot_be_read_says_which(self, tmp_path: Path) -> None:
        (tmp_path / "train.jsonl").write_text('{}\n{"prompt": [')
        with pytest.raises(SystemExit, match=r"train\.jsonl:2 is not a row"):
            job._rows([str(tmp_path / "train.jsonl")], "sft")

    def test_that_fails_says_what_it_needs(self, tmp_path: Path) -> None:
        chosen = plan("sft", [exported(tmp_path / "a")], TrainingSettings())
        with pytest.raises(TrainingFailed, match=r"ended with 3: .* needs torch, transformers, trl, peft"):
            train(chosen, tmp_path / "out", python=program(tmp_path / "python", "raise SystemExit(3)"))

    def test_whose_folder_cannot_be_made_is_not_begun(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(UsageError, match=r"--out .*file/out cannot be made"):
            train(plan("sft", [exported(tmp_path / "a")], TrainingSettings()), tmp_path / "file" / "out")

    def test_without_an_interpreter_is_not_begun(self, tmp_path: Path) -> None:
        chosen = plan("sft", [exported(tmp_path / "a")], TrainingSettings())
        with pytest.raises(UsageError, match="nowhere/python cannot be run"):
            train(chosen, tmp_path / "out", python=tmp_path / "nowhere" / "python")

    def test_learns_each_answer_but_those_that_are_not_to_be_learned(self) -> None:
        asked, wrong, right = (
            {"role": role, "content": text} for role, text in (("user", "?"), ("assistant", "no"), ("assistant", "yes"))
        )
        row = {"messages": [asked, wrong | {"train": False}, asked, right], "tools": []}
        assert job._answers([row]) == [{"prompt": [asked, wrong, asked], "completion": [right], "tools": []}]

    def test_imitates_no_rollout_that_solved_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        lines = [json.dumps({"messages": [], "resolved": resolved}) for resolved in (True, False, False)]
        (tmp_path / "train.jsonl").write_text("\n".join(lines))
        assert job._rows([str(tmp_path / "train.jsonl")], "sft") == [{"messages": []}]
        assert capsys.readouterr().err == "2 of 3 rollouts did not solve their task: left out\n"

    def test_is_begun_by_what_begins_as_many_processes_as_are_wanted(self) -> None:
        assert training._launcher(1, True) == training._launcher(1, False) == []
        assert training._launcher(2, True)[-2:] == ["--nproc-per-node", "2"]
        assert training._launcher(2, False)[1:3] == ["accelerate.commands.launch", "--multi_gpu"]

    def test_holds_weights_that_are_trained_in_full_precision(self) -> None:
        kinds = [job._dtype({"lora": lora, "cpu": cpu}) for lora, cpu in ((0, False), (8, False), (8, True))]
        assert kinds == ["float32", "auto", "float32"]

    def test_goes_on_from_the_last_checkpoint_that_is_whole(self, tmp_path: Path) -> None:
        assert job._last_checkpoint(tmp_path / "none") is None
        for steps in (200, 1000, 1200):
            (tmp_path / f"checkpoint-{steps}").mkdir()
        for steps in (200, 1000):
            (tmp_path / f"checkpoint-{steps}" / "trainer_state.json").write_text("{}")
        assert job._last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-1000")

    @pytest.mark.parametrize("template", ["{{ messages }}", "{% if id|length != 9 %}"])
    def test_call_ids_are_what_the_template_takes(self, template: str) -> None:
        row = {"messages": [ANSWERED, *RESULTS], "tools": []}
        (fitted,) = templates.fitted([row], template)
        if "9" not in template:
            assert fitted is row
            return
        answer, *results = fitted["messages"]
        ids = [call["id"] for call in answer["tool_calls"]]
        assert ids == [message["tool_call_id"] for message in results]
        assert len(set(ids)) == 2
        assert all(len(name) == 9 and name.isalnum() for name in ids)
        assert ids[1] == "aB3aB3aB3"

    def test_an_answer_has_one_call_where_the_template_takes_no_more(self) -> None:
        template = "raise_exception('This model only supports single tool-calls at once!')"
        row = {"prompt": [{"role": "user", "content": "Begin."}], "completion": [ANSWERED, *RESULTS]}
        (fitted,) = templates.fitted([row], template)
        assert fitted["prompt"] == row["prompt"]
        first, one, second, two = fitted["completion"]
        assert [message["tool_calls"] for message in (first, second)] == [[call] for call in ANSWERED["tool_calls"]]
        assert (first["content"], second["content"], one, two) == ("So.", "", *RESULTS)
        assert (first["train"], second["train"]) == (False, False)

    def test_the_job_imports_nothing_of_ours(self) -> None:
        for name in ("job.py", "templates.py", "tiny.py", "tree_grpo.py"):
            text = (Path(training.__file__).parent / name).read_text()
            assert "import agent" not in text
            assert "from agent" not in text


CALLS = [{"id": name, "function": {"name": "bash", "arguments": {}}} for name in ("call_bash_0", "aB3aB3aB3")]
ANSWERED = {"role": "assistant", "content": "So.", "tool_calls": CALLS, "train": False}
RESULTS = [{"role": "tool", "content": call["id"], "tool_call_id": call["id"]} for call in CALLS]
RIGHT, WRONG, OUTSIDE = (
    Edit("m.py", "    return a - b\n", new, line)
    for new, line in (("    return a + b\n", 2), ("    return b - a\n", 2), ("x = 1\n", 9))
)


PROMPT = ("prompt", [{"role": "user", "content": "<L1>def f(<V1>, <V2>):\n<L2>    return <V1> - <V2>\n<fix>\n"}])
GOOD = [{"role": "assistant", "content": "<L2>    return <V1> + <V2>\n<end>"}]
BAD = [{"role": "assistant", "content": "<L2>    return <V2> - <V1>\n<end>"}]
NONE = {"skipped": "an edit of no function, or of several"}


class TestRowsOfEdits:
    def history(self, place: Path, ranked: bool = True, right: Edit = RIGHT) -> History:
        told = History(place)
        if ranked:
            found = Ranked(
                [Entry(n, 0.3, 0.5) for n in range(3)], [Context("m.py", 1, "def f(a, b):\n    return a - b\n")]
            )
            told.run.record(Noted(0, key(0), found.to_json()))
        told.add(0, turn(WRONG if right is RIGHT else RIGHT), a=P)
        told.add(0, turn(right), a=P, b=P)
        told.add(0, turn(OUTSIDE))
        return told

    def rows(self, told: History, **options: Any) -> list[dict[str, Any]]:
        return [{k: v for k, v in row.items() if k != "provenance"} for row in Edits(**options)(told.run)]

    def test_sft_rows_are_the_right_edits(self, tmp_path: Path) -> None:
        assert self.rows(self.history(tmp_path)) == [NONE, dict([PROMPT, ("completion", GOOD)])]

    def test_preference_rows_pair_a_right_edit_with_a_wrong_one(self, tmp_path: Path) -> None:
        found = self.rows(self.history(tmp_path), kind="preference")
        assert found[1:] == [dict([PROMPT, ("chosen", GOOD), ("rejected", BAD)])]

    def test_kto_rows_are_all_edits_with_what_came_of_them(self, tmp_path: Path) -> None:
        found = self.rows(self.history(tmp_path), kind="kto")
        assert [(row["completion"], row["label"]) for row in found[1:]] == [(BAD, False), (GOOD, True)]

    def test_an_edit_that_was_right_in_any_run_is_right_in_all(self, tmp_path: Path) -> None:
        runs = [self.history(tmp_path / str(n), right=right).run for n, right in enumerate((RIGHT, WRONG))]
        by = {kind: make(f"edit-{kind}", {}) for kind in ("kto", "preference")}
        for exporter in by.values():
            assert isinstance(exporter, NeedsAllRuns)
            for run in runs:
                exporter.collect(run)
        assert [row["label"] for run in runs for row in by["kto"](run) if "label" in row] == [True] * 4
        assert [row for run in runs for row in by["preference"](run)] == [NONE] * 2

    def test_rows_have_the_digest_of_their_prompt_and_are_no_models_own_words(self, tmp_path: Path) -> None:
        _, row = Edits()(self.history(tmp_path).run)
        told = row["provenance"]
        assert (told["exact"], told["logprobs"], told["prompts"]) == (False, [None], [digest_of([[], *row["prompt"]])])

    def test_a_search_that_kept_no_functions_has_no_rows(self, tmp_path: Path) -> None:
        assert self.rows(self.history(tmp_path, ranked=False)) == []

    def test_counting_from_the_command_line_writes_a_file_that_the_policy_reads(self, tmp_path: Path) -> None:
        self.history(tmp_path / "run")
        done = runner.invoke(app, ["train", "counts", str(tmp_path / "run"), "--out", str(tmp_path / "c.json")])
        assert done.output.startswith("1 of 3 edits were right (from 1 run)")
        assert Counts.read(tmp_path / "c.json").by["change:- -> +"] == (1, 1)

    def test_counts_go_to_a_folder_that_is_made_for_them_where_it_can_be(self, tmp_path: Path) -> None:
        self.history(tmp_path / "run")
        out = tmp_path / "new" / "c.json"
        assert runner.invoke(app, ["train", "counts", str(tmp_path / "run"), "--out", str(out)]).exit_code == 0
        done = runner.invoke(app, ["train", "counts", str(tmp_path / "run"), "--out", str(out / "c.json")])
        assert isinstance(done.exception, UsageError)
        assert "c.json cannot be written" in str(done.exception)


def server(**changes: Any) -> serving.Server:
    return serving.Server(**{"model": "/models/policy-7", "port": 8123} | changes)


class TestServing:
    def test_the_command_has_the_flags_that_a_search_wants(self, tmp_path: Path) -> None:
        (tmp_path / "adapter_config.json").write_text("{}")
        line = serving.command(server(adapters={"v1": tmp_path}, max_model_len=4096, cpu=True), "python")
        text = " ".join(line)
        for wanted in (
            "--served-model-name policy-7",
            "--enable-prefix-caching",
            "--enable-auto-tool-choice --tool-call-parser hermes",
            "--logprobs-mode processed_logprobs",
            f"--lora-modules v1={tmp_path}",
            "--seed 0",
            "--max-model-len 4096 --max-num-batched-tokens 4096",
            "--block-size 32",
        ):
            assert wanted in text
        assert serving.environment(server(adapters={}))["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "1"

    def test_the_command_is_printed_with_its_environment(self) -> None:
        done = runner.invoke(app, ["serve", "/models/x", "--print", "--cpu", "--python", "/v/bin/python"])
        assert done.exit_code == 0
        assert "VLLM_TARGET_DEVICE=cpu" in done.output
        assert "/v/bin/python -m vllm.entrypoints.openai.api_server --model /models/x" in done.output

    def test_an_adapter_that_is_none_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"--lora v1=.*no readable adapter_config\.json"):
            serving.command(server(adapters={"v1": tmp_path}), "python")
        with pytest.raises(UsageError, match="--lora-rank 12: vLLM accepts 8, 16"):
            serving.command(server(adapters={}, lora_rank=12), "python")

    def test_an_adapter_that_vllm_would_die_of_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "adapter_config.json").write_text('{"r": 20}')
        with pytest.raises(UsageError, match="its rank is 20; give --lora-rank 32"):
            serving.command(server(adapters={"v1": tmp_path}), "python")
        with pytest.raises(UsageError, match="the model itself has that name"):
            serving.command(server(adapters={"policy-7": tmp_path}, lora_rank=32), "python")
        with pytest.raises(UsageError, match="is an adapter: serve the checkpoint it was trained on"):
            serving.command(server(model=str(tmp_path)), "python")

    def test_an_adapter_is_served_on_the_checkpoint_that_it_was_trained_on(self, tmp_path: Path) -> None:
        base, adapter = tmp_path / "base", tmp_path / "trained" / "model"
        for folder in (base, adapter):
            folder.mkdir(parents=True)
        (adapter / "adapter_config.json").write_text(json.dumps({"r": 20, "base_model_name_or_path": str(base)}))
        done = runner.invoke(app, ["serve", str(adapter), "--print"])
        assert f"is an adapter of {base}, which does not exist" in str(done.exception)
        (base / "config.json").write_text("{}")
        said = runner.invoke(app, ["serve", str(adapter), "--name", "mine", "--print"]).output
        assert f"--model {base} --served-model-name base " in said
        assert f"--enable-lora --max-lora-rank 32 --lora-modules mine={adapter}" in said

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["v1"], "'v1': write NAME=DIR"),
            (["=here"], "'=here': write NAME=DIR"),
            (["v1=a", "v1=b"], "another adapter has the name v1"),
        ],
    )
    def test_adapters_have_names_of_their_own(self, given: list[str], said: str) -> None:
        done = runner.invoke(
            app, ["serve", "/models/x", "--print", *(arg for each in given for arg in ("--lora", each))]
        )
        assert said in str(done.exception)

    def test_adapters_can_be_loaded_later_where_their_rank_is_given(self) -> None:
        done = runner.invoke(app, ["serve", "/models/x", "--print", "--lora-rank", "32"])
        assert "--enable-lora --max-lora-rank 32" in done.output
        assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" in done.output
        assert "--enable-lora" not in runner.invoke(app, ["serve", "/models/x", "--print"]).output

    def test_the_folder_that_one_is_in_has_a_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert server(model=".").served == tmp_path.name

    HEALTHY = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""

    BRIEF = HEALTHY.replace("serve_forever()", "handle_request(); raise SystemExit(5)")

    def port(self) -> int:
        """A free one, of those that the kernel gives to nobody who asks for any."""
        while True:
            port = random.randrange(20_000, 30_000)
            with socket.socket() as sock, suppress(OSError):
                sock.bind(("127.0.0.1", port))
                return port

    def test_a_server_is_up_for_the_block_and_gone_after_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where others are behind a proxy."""
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", "")
        port = self.port()
        up = server(port=port)
        with serving.running(up, str(program(tmp_path / "p", self.HEALTHY)), ready_s=100, log=tmp_path / "log"):
            assert socket.create_connection(("127.0.0.1", port), 100).close() is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 100)

    def test_a_server_is_gone_when_a_signal_ends_who_began_it(self, tmp_path: Path) -> None:
        port, python = self.port(), program(tmp_path / "p", self.HEALTHY)
        argv = [sys.executable, "-m", "agent", "serve", "/models/x", "--port", str(port), "--python", str(python)]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as serve:
            assert serve.stderr is not None
            assert any(line.startswith("up: ") for line in serve.stderr)
            serve.terminate()
            assert serve.wait(100) == 143
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 100)

    def test_a_server_that_ends_while_it_is_wanted_is_an_error(self, tmp_path: Path) -> None:
        python = program(tmp_path / "p", self.BRIEF)
        done = runner.invoke(app, ["serve", "/models/x", "--port", str(self.port()), "--python", str(python)])
        assert isinstance(done.exception, serving.ServerFailed)
        assert "the server ended with exit code 5" in str(done.exception)

    def test_another_server_is_not_taken_for_this_one(self, tmp_path: Path) -> None:
        with ScriptedServer([]) as other:
            taken = server(port=int(other.url.split(":")[2].split("/")[0]))
            with pytest.raises(UsageError, match="something already listens on 127"), serving.running(taken, "python"):
                pytest.fail("it was never up")

    def test_an_interpreter_that_is_none_is_said(self, tmp_path: Path) -> None:
        none = str(tmp_path / "none")
        with pytest.raises(UsageError, match="none cannot be run"), serving.running(server(port=self.port()), none):
            pytest.fail("it was never up")

    def test_a_server_that_ends_is_noticed(self, tmp_path: Path) -> None:
        broken, log = str(program(tmp_path / "p", "raise SystemExit(7)")), tmp_path / "server.log"
        said = pytest.raises(serving.ServerFailed, match=r"ended with 7 .* see its output in .*/server\.log")
        with said, serving.running(server(port=self.port()), broken, ready_s=100, log=log):
            pytest.fail("it was never up")


class TestDoctorOfAModel:
    def script(self, asked: dict[str, Any]) -> Any:
        if "echo" in asked:
            return scores(asked, lambda text: -1.0)
        if "n" in asked:
            return fails(400, "n is not supported")
        if "tools" in asked:
            return says(None, ("run_tests", {}))
        return says("word", logprobs=(-1.0,) if "logprobs" in asked else (), cached=960)

    def test_asks_for_each_thing_that_a_search_can_use(self) -> None:
        with ScriptedServer(self.script) as up:
            found = {each.name: each for each in examine_model("openai/tiny", up.url)}
        assert [name for name, each in found.items() if not each.ok] == ["several"]
        assert found["several"].detail.startswith("400: ")
        assert found["tools"].detail == "calls run_tests"
        assert found["prefixes"].detail == "960 of 1000 tokens of a repeated prompt"

    def odd(self, asked: dict[str, Any]) -> Any:
        if "echo" in asked:
            answer = {"text": "t", "logprobs": {"tokens": ["t"], "token_logprobs": [-1.0], "text_offset": [0]}}
            return Reply(json.dumps({"choices": [answer]}).encode())
        if "tools" in asked:
            return Reply(b'{"choices": [{"message": null}]}')
        return says("word").fails("cut", 2) if "n" in asked else says("word", usage=False)

    def test_says_no_of_what_an_odd_server_does_in_its_own_way(self) -> None:
        """No call, half an answer, none of the things asked for, the log-probabilities of something else, no usage."""
        with ScriptedServer(self.odd) as up:
            found = {each.name: each for each in examine_model("openai/tiny", up.url)}
        assert [name for name, each in found.items() if each.ok] == ["server"]
        assert found["several"].detail.startswith("IncompleteRead: ")
        assert found["scores"].detail == "no log-probabilities of given texts"
        assert found["prefixes"].detail == "no hit is reported"

    def test_of_a_server_that_is_not_there_nothing_else_is_asked(self) -> None:
        with ScriptedServer([]) as up:
            url = up.url
        done = runner.invoke(app, ["doctor", "--model", "openai/tiny", "--base-url", url])
        assert done.exit_code == 4
        assert done.output.count("no  ") == 1
        assert "ramify serve MODEL" in done.output

    def test_of_a_model_that_the_server_does_not_have_nothing_else_is_asked(self) -> None:
        with ScriptedServer(self.script) as up:
            (found,) = examine_model("openai/another", up.url)
        assert (found.name, found.ok, found.detail.startswith("no model another: ")) == ("server", False, True)

    def test_a_page_for_a_browser_is_not_repeated(self) -> None:
        with ScriptedServer(lambda asked: Reply(b"<html><body>not here</body></html>", 404)) as up:
            found = {each.name: each.detail for each in examine_model("openai/tiny", up.url)}
        assert "<" not in "".join(found.values())

    def test_needs_a_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        with pytest.raises(ConfigError, match="name its server with --base-url"):
            list(examine_model("openai/tiny", None))

    def test_of_a_server_needs_a_model(self) -> None:
        done = runner.invoke(app, ["doctor", "--base-url", "http://127.0.0.1:1/v1"])
        assert "--base-url http://127.0.0.1:1/v1 needs a model" in str(done.exception)


def test_nothing_of_it_imports_a_learning_library() -> None:
    modules = "agent.cli.app, agent.learning.training, agent.learning.serving"
    code = f"import sys, {modules}; print(*{{'torch', 'trl', 'vllm'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"\n"
