"""Real trainings with TRL on the CPU, in an environment of their own (`scripts/train-env`)."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.learning import serving
from agent.learning.training import TrainingPlan, TrainingSettings, plan, train, with_adapter

pytestmark = [pytest.mark.train, pytest.mark.timeout(600)]

TINY = {"width": 64, "layers": 2, "vocabulary": 400, "positions": 512}
WANTED = TrainingSettings(
    max_steps=4, batch=4, rate=3e-3, max_length=256, save_steps=2, log_steps=1, cpu=True, tiny=TINY
)


def prompt(number: int) -> list[dict[str, str]]:
    lines = [f"def f{number}(a, b):", f"    x = a + {number}", "    return x - b"]
    return [{"role": "user", "content": "".join(f"<L{n}>{line}\n" for n, line in enumerate(lines, 1)) + "<fix>\n"}]


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": f"<L3>    return {text}\n<end>"}]


ROWS: dict[str, list[dict[str, Any]]] = {
    "edit": [{"prompt": prompt(n), "completion": said("x + b")} for n in range(16)],
    "edit-preference": [{"prompt": prompt(n), "chosen": said("x + b"), "rejected": said("x")} for n in range(16)],
    "edit-kto": [
        {"prompt": prompt(n), "completion": said("x + b" if n % 2 else "x"), "label": bool(n % 2)} for n in range(16)
    ],
}


def data(folder: Path, form: str) -> Path:
    folder.mkdir(parents=True)
    manifest = {"format": form, "counts": {"policy": {"edit/1/mutate": len(ROWS[form])}}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "train.jsonl").write_text("".join(json.dumps(row | {"provenance": {}}) + "\n" for row in ROWS[form]))
    return folder


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> TrainingPlan:
    return plan("sft", [data(tmp_path_factory.mktemp("rows") / "edit", "edit")], WANTED)


@pytest.fixture(scope="module")
def trained(chosen: TrainingPlan, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    train(chosen, out, python=python)
    return out


def losses(metrics: dict[str, Any]) -> list[float]:
    return [float(each["loss"]) for each in metrics["history"] if "loss" in each]


def test_a_model_from_nothing_learns_and_leaves_all_that_a_server_needs(trained: Path) -> None:
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["steps"] == 4
    assert losses(metrics)[-1] < losses(metrics)[0]
    assert (trained / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((trained / "model" / "config.json").read_text())["use_cache"]
    assert {"model.safetensors", "tokenizer.json", "chat_template.jinja"} <= {
        p.name for p in (trained / "model").iterdir()
    }


def test_a_training_that_broke_off_goes_on_from_its_checkpoint(
    trained: Path, chosen: TrainingPlan, python: Path, tmp_path: Path
) -> None:
    for name in ("scratch", "checkpoints/checkpoint-2"):
        shutil.copytree(trained / name, tmp_path / name)
    metrics = train(chosen, tmp_path, python=python)
    whole = json.loads((trained / "metrics.json").read_text())
    assert losses(metrics) == pytest.approx(losses(whole), rel=1e-3)
    steps = [each["step"] for each in metrics["history"]]
    assert steps == [each["step"] for each in whole["history"]] == [1, 2, 3, 4]
    assert (metrics["steps"], metrics["resumed_at"], whole["resumed_at"]) == (4, 2, 0)


def test_rows_of_which_nothing_can_be_learned_are_told(
    python: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Prompts that fill the room leave none for the answer; no rollout of those to validate with solved its task."""
    folder = data(tmp_path / "rows", "edit")
    row = json.dumps({"prompt": [{"role": "user", "content": "x + " * 400}], "completion": said("x")})
    (folder / "train.jsonl").write_text((folder / "train.jsonl").read_text() + f"{row}\n" * 3)
    (folder / "validation.jsonl").write_text(json.dumps(ROWS["edit"][0] | {"resolved": False}) + "\n")
    wanted = replace(WANTED, max_steps=1, log_steps=10)
    metrics = train(plan("sft", [folder], wanted), tmp_path / "out", python=python)
    assert "3 of 19 rows do not fit --max-length 256: left out" in capfd.readouterr().err
    assert (metrics["rows"], len(losses(metrics))) == (16, 1)


def test_rows_of_a_length_go_together(python: Path, tmp_path: Path) -> None:
    """Of 64 rows, four steps of four take a quarter that was drawn, the longest first."""
    folder = data(tmp_path / "rows", "edit")
    rows = [{"prompt": prompt(n), "completion": said("x + b" * (1 + n % 8))} for n in range(64)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = replace(WANTED, max_steps=16, save_steps=16, group_by_length=True)
    history = train(plan("sft", [folder], wanted), tmp_path / "out", python=python)["history"]
    totals = [0.0, *(each["num_tokens"] for each in history if "loss" in each)]
    steps = [after - before for before, after in pairwise(totals)]
    assert [steps[n : n + 4] for n in range(0, 16, 4)] == [
        sorted(steps[n : n + 4], reverse=True) for n in range(0, 16, 4)
    ]


@pytest.mark.parametrize("in_order", [True, False])
def test_rows_are_taken_in_their_own_order_where_asked(in_order: bool, python: Path, tmp_path: Path) -> None:
    """Each row is longer than the one before."""
    folder = data(tmp_path / "rows", "edit")
    rows = [{"prompt": prompt(n), "completion": said(" + ".join("x" * (n + 1)))} for n in range(32)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = replace(WANTED, max_steps=8, save_steps=8, batch=4, in_order=in_order)
    history = train(plan("sft", [folder], wanted), tmp_path / "out", python=python)["history"]
    totals = [0.0, *(each["num_tokens"] for each in history if "loss" in each)]
    steps = [after - before for before, after in pairwise(totals)]
    assert (steps == sorted(steps)) == in_order


def test_a_name_is_cut_alike_wherever_it_stands(trained: Path, python: Path) -> None:
    """So that a model that has seen it once can copy it."""
    text = "<L1>depth(depth, -depth) + depth[x:depth] if depth in depth else (depth).depth\n"
    script = "import json, sys; from transformers import AutoTokenizer as t; text = sys.argv[2]\n"
    script += "tokens = t.from_pretrained(sys.argv[1]); cut = tokens.backend_tokenizer.pre_tokenizer.pre_tokenize_str\n"
    script += "print(json.dumps([[text[slice(*at)] for _, at in cut(text)], tokens.decode(tokens(text)['input_ids'])]))"
    command = [str(python), "-c", script, str(trained / "model"), text]
    pieces, again = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert pieces.count("depth") == text.count("depth")
    assert again == text


def test_processes_share_the_rows_of_a_training(chosen: TrainingPlan, python: Path, tmp_path: Path) -> None:
    """16 rows, 4 a step for each: alone a process needs 4 steps to see all, two need 2."""
    metrics = train(chosen, tmp_path, python=python, processes=2)
    assert [each["epoch"] for each in metrics["history"] if "loss" in each] == [0.5, 1.0, 1.5, 2.0]
    assert (tmp_path / "model" / "model.safetensors").exists()


ANSWERS = """
import sys
from peft import AutoPeftModelForCausalLM
from transformers import AutoTokenizer
tokens = AutoTokenizer.from_pretrained(sys.argv[1])
asked = tokens("x + ", return_tensors="pt")
model = AutoPeftModelForCausalLM.from_pretrained(sys.argv[1])
said = model.generate(asked["input_ids"], max_new_tokens=4, min_new_tokens=4)
print(said.shape[1] - asked["input_ids"].shape[1])
"""


def test_a_chat_model_gets_an_adapter_unless_all_weights_are_asked_for_and_it_loads_and_answers(
    trained: Path, python: Path, tmp_path: Path
) -> None:
    folder = data(tmp_path / "rows", "edit")
    (folder / "manifest.json").write_text(json.dumps({"format": "sft", "counts": {"policy": {"chat": 16}}}))
    rows = [{"messages": [*prompt(n), *said("x + b")]} for n in range(16)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = TrainingSettings(str(trained / "model"), max_steps=1, batch=4, max_length=256, log_steps=1, cpu=True)
    metrics = train(with_adapter(plan("sft", [folder], wanted), python), tmp_path / "out", python=python)
    assert 0 < metrics["trained"] < metrics["parameters"]
    adapter = str(tmp_path / "out" / "model")
    assert serving.checkpoint_of(adapter) == str(trained / "model")
    assert subprocess.run([python, "-c", ANSWERS, adapter], capture_output=True, check=True).stdout == b"4\n"


@pytest.mark.parametrize(("method", "form"), [("dpo", "edit-preference"), ("kto", "edit-kto")])
def test_preferences_train_an_adapter(trained: Path, python: Path, tmp_path: Path, method: Any, form: str) -> None:
    wanted = TrainingSettings(
        str(trained / "model"), lora=8, max_steps=1, batch=4, max_length=256, log_steps=1, cpu=True
    )
    metrics = train(plan(method, [data(tmp_path / "rows", form)], wanted), tmp_path / "out", python=python)
    assert metrics["steps"] == 1
    assert 0 < metrics["trained"] < metrics["parameters"]
    assert (tmp_path / "out" / "model" / "adapter_config.json").exists()
