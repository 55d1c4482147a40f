"""Each format of `ramify export` is taken by the trainer that it is for: rows of fixed trees, one real step of TRL."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Shell
from agent.learning import training
from agent.learning.export.dataset import ExportSettings, export
from agent.learning.export.registry import FORMATS, make
from agent.learning.training import METHODS, Method, TrainingSettings, plan, train
from tests.exporting import Recorder, chat_tree, failing_call, planned, shortened, small_tree
from tests.scripted import answer
from tests.train.conftest import ROOT

pytestmark = [pytest.mark.train, pytest.mark.timeout(600)]

TREES = {"small": small_tree, "chat": chat_tree, "fails": failing_call, "plans": planned, "short": shortened}
FOR_NO_TRAINER = {"prm", "openai", "openai-preference"}
"""TRL has no trainer of step values since 1.14; OpenAI's form is for others."""
EDITS = {"edit", "edit-preference", "edit-kto"}
"""`test_job` trains on these."""
TAKEN: list[tuple[Method, str]] = [(m, form) for m, forms in METHODS.items() for form in forms if form not in EDITS]
LOADED = """
import json, sys
from datasets import load_dataset
for folder in sys.argv[1:]:
    written = [json.loads(line) for line in open(folder + "/train.jsonl")]
    table = load_dataset("parquet", data_files=folder + "/train.parquet")
    assert [*load_dataset(folder)["train"]] == [*table["train"]] == written, folder
"""
ONE_PROCESS = "import sys; sys.path.insert(0, sys.argv[1]); import job; [job.main(order) for order in sys.argv[2:]]"


def test_every_format_has_a_trainer_but_those_for_which_there_is_none() -> None:
    assert {form for _, form in TAKEN} | FOR_NO_TRAINER | EDITS == set(FORMATS)


def test_a_folder_is_loaded_as_it_was_written_whatever_its_first_rows_are_like(python: Path, tmp_path: Path) -> None:
    """`datasets` looks at 10 MB at a time: no answer among the first has a call. Both folders have the same name."""
    for batch, first in (("long", "x" * 11_000_000), ("short", "x")):
        made = Recorder(tmp_path / batch / "runs" / "a")
        made.add(0, 1.0, [made.asks(0, [{"role": "user", "content": first}], answer("words"), Shell("ls"), tools=[])])
        made.run.close()
        chat_tree(tmp_path / batch / "runs" / "b").close()
        settings = ExportSettings("kto", make("kto", {}), parquet=True)
        export(sorted((tmp_path / batch / "runs").iterdir()), settings, tmp_path / batch / "rows")
    folders = [tmp_path / batch / "rows" for batch in ("long", "short")]
    subprocess.run(
        [python, "-c", LOADED, *folders],
        check=True,
        env=os.environ | {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
    )


@pytest.fixture(scope="module")
def checkpoints(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Random weights with a chat template that TRL does not know, and with one that it does."""
    folder = tmp_path_factory.mktemp("checkpoints")
    other, known = folder / "other", folder / "known"
    subprocess.run([python, ROOT / "tests/vllm/tiny_model.py", other], check=True)
    shutil.copytree(other, known)
    (template,) = python.parent.parent.glob("lib/python3*/site-packages/trl/chat_templates/qwen2_5.jinja")
    shutil.copy(template, known / "chat_template.jinja")
    return other, known


@pytest.fixture(scope="module")
def trained(checkpoints: tuple[Path, Path], python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of trainings; all in one process, most of whose time is spent on importing what it needs."""
    folder, orders = tmp_path_factory.mktemp("trained"), list[Path]()
    for name, make_tree in TREES.items():
        make_tree(folder / "runs" / name).close()
    for number, checkpoint in enumerate(checkpoints):
        wanted = TrainingSettings(str(checkpoint), max_steps=1, batch=2, max_length=4096, log_steps=1, cpu=True)
        for method, form in TAKEN:
            rows = folder / "rows" / form
            if not rows.exists():
                export(sorted((folder / "runs").iterdir()), ExportSettings(form, make(form, {})), rows)
            out = folder / f"{method}-{form}-{number}"
            out.mkdir()
            orders.append(out / "order.json")
            orders[-1].write_text(json.dumps(plan(method, [rows], wanted, mix_policies=True).spec()))
    subprocess.run([python, "-c", ONE_PROCESS, Path(training.__file__).parent, *orders], check=True)
    return folder


@pytest.mark.parametrize("template", [0, 1], ids=["another's template", "a template that TRL knows"])
@pytest.mark.parametrize(("method", "form"), TAKEN)
def test_is_taken_as_it_is(trained: Path, method: Method, form: str, template: int) -> None:
    metrics: dict[str, Any] = json.loads((trained / f"{method}-{form}-{template}" / "metrics.json").read_text())
    assert metrics["steps"] == 1
    losses = [each["loss"] for each in metrics["history"] if "loss" in each]
    assert len(losses) == 1
    assert losses[0] if method == "grpo" else losses[0] > 0


def test_the_loss_of_grpo_is_that_of_the_answers_by_their_advantage(
    checkpoints: tuple[Path, Path], python: Path, tmp_path: Path
) -> None:
    """Both rows have two answers of the same length, and one a long result between them: half of the tokens that count
    have the advantage 2, times 3 trajectories, and half 0."""
    said = {"role": "assistant", "content": "the same words"}
    rows = [
        {"prompt": [{"role": "user", "content": "?"}], "completion": [said, {"role": "user", "content": told}, said]}
        for told in ("ok", "a long result " * 20)
    ]
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"format": "grpo-tree", "counts": {"policy": {"chat": 2}}}))
    lines = (row | {"advantage": by, "weight": 3} for row, by in zip(rows, (2.0, 0.0), strict=True))
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted = TrainingSettings(str(checkpoints[0]), max_steps=1, batch=2, log_steps=1, cpu=True)
    history = train(plan("grpo", [folder], wanted), tmp_path / "out", python=python)["history"]
    assert history[0]["loss"] == pytest.approx(-3.0, abs=1e-3)
