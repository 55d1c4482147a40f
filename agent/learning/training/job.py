"""The training program: runs TRL, PEFT and transformers on exported rows, as the order file specifies.

    python job.py ORDER.json

It needs the packages of the extra `[train]` and nothing of Ramify, so that any environment with them can run it, also
under `accelerate launch`. Run again with the same order, it resumes from its last checkpoint.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning threads are slow on a shared machine
os.environ.setdefault("HF_HUB_OFFLINE", "1")

COLUMNS = {"sft": {"messages", "prompt", "completion", "tools"}, "dpo": {"prompt", "chosen", "rejected", "tools"}}
COLUMNS |= {"kto": {"prompt", "completion", "label", "tools"}, "reward": COLUMNS["dpo"]}
COLUMNS["prm"] = COLUMNS["sft"]
COLUMNS |= {"grpo": {"prompt", "completion", "tools", "advantage", "weight"}}
"""The columns that each method's trainer reads."""


def main(order_file: str) -> None:
    """Train, then write the model, `loss.png` and, last of all, `metrics.json` beside the order."""
    order = json.loads(Path(order_file).read_text(encoding="utf-8"))
    out = Path(order_file).parent
    started = time.time()
    trainer = _trainer(order, out)
    checkpoint = _last_checkpoint(out / "checkpoints")
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model(str(out / "model"))  # in every process: each may hold only a part of the model
    if not trainer.is_world_process_zero():
        return
    trainer.processing_class.save_pretrained(str(out / "model"))
    _let_generate(out / "model" / "config.json")
    # Leave out the trainer's summary: after a resumption it spreads the last session's losses over all steps.
    history = [entry for entry in trainer.state.log_history if "train_runtime" not in entry]
    _draw(history, out / "loss.png")
    facts = {"steps": trainer.state.global_step, "resumed_at": _steps(checkpoint)}
    facts |= {"seconds": round(time.time() - started, 1), "rows": len(trainer.train_dataset)}
    facts |= {"parameters": sum(p.numel() for p in trainer.model.parameters())}
    facts |= {"trained": sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)}
    facts["history"] = history
    _write(out / "metrics.json", json.dumps(facts, indent=1) + "\n")


def _write(file: Path, text: str) -> None:
    """Write the file atomically: its presence means that the training is finished."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def _trainer(order: dict[str, Any], out: Path) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, set_seed

    set_seed(order["seed"])
    rows, held_out = (_rows(order[name], order["method"]) for name in ("files", "validation"))
    if not rows:
        raise SystemExit("nothing to learn: none of these rollouts solved its task")
    order["validation"] = order["validation"] if held_out else []
    folder = order["model"] or _from_scratch(rows, order, out / "scratch")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows, held_out = (_part("templates").fitted(part, str(tokenizer.chat_template)) for part in (rows, held_out))
    if order["assistant_only"] and not _maskable([*rows, *held_out], tokenizer):
        rows, held_out = _answers(rows), _answers(held_out)
        order["assistant_only"] = False
    if order["method"] == "reward":
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1, dtype=_dtype(order))
    else:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=_dtype(order))
    config, kind = _config(order, out)
    if order["method"] == "grpo":
        part = _part("tree_grpo")
        kind, rows, held_out = part.TreeTrainer, part.encoded(rows, tokenizer, order["max_length"]), []
    arguments = {"model": model, "args": config, "train_dataset": _dataset(rows), "processing_class": tokenizer}
    if held_out:
        arguments["eval_dataset"] = _dataset(held_out)
    trainer = kind(**arguments, peft_config=_adapter(order))
    left, longest = len(trainer.train_dataset), order["max_length"]
    if left < len(rows):  # the trainer itself drops rows from which it cannot learn
        sys.stderr.write(f"{len(rows) - left} of {len(rows)} rows do not fit --max-length {longest}: left out\n")
    if not left:
        raise SystemExit("nothing to learn: give a higher --max-length")
    return trainer


def _config(order: dict[str, Any], out: Path) -> tuple[Any, Any]:
    import trl

    names = {"sft": "SFT", "dpo": "DPO", "kto": "KTO", "reward": "Reward", "grpo": "GRPO", "prm": "SFT"}
    common = {
        "output_dir": str(out / "checkpoints"),
        "num_train_epochs": order["epochs"],
        "max_steps": order["max_steps"],
        "per_device_train_batch_size": order["batch"],
        "gradient_accumulation_steps": order["accumulate"],
        "learning_rate": order["rate"],
        "adam_beta2": 0.999 if order["model"] else 0.98,
        "max_length": order["max_length"],
        "seed": order["seed"],
        "data_seed": order["seed"],
        "save_steps": order["save_steps"],
        "save_total_limit": 2,
        "logging_steps": order["log_steps"],
        "logging_first_step": True,
        "eval_strategy": "epoch" if order["validation"] else "no",
        "lr_scheduler_type": "cosine",
        "warmup_steps": order["warmup_steps"],
        "use_cpu": order["cpu"],
        "bf16": not order["cpu"],
        "activation_checkpointing": not order["cpu"],
        "report_to": "none",
        "disable_tqdm": True,
    }
    if order["group_by_length"]:
        common["train_sampling_strategy"] = "group_by_length"
    if order["in_order"]:
        common["train_sampling_strategy"] = "sequential"
    if order["method"] == "sft":
        common |= {"completion_only_loss": False} if order["prompt_loss"] else {}
        common |= {"assistant_only_loss": True} if order["assistant_only"] else {}
    elif order["method"] == "grpo":
        del common["max_length"]
        together = order["batch"] * int(os.environ.get("WORLD_SIZE", "1"))
        common |= {"eval_strategy": "no", "steps_per_generation": 1, "num_generations": together}
    elif order["method"] not in ("reward", "prm"):
        common |= {"beta": order["beta"]}
    name = names[order["method"]]
    return getattr(trl, f"{name}Config")(**common), getattr(trl, f"{name}Trainer")


def _dtype(order: dict[str, Any]) -> str:
    """Trained weights are kept in float32 whatever the checkpoint has: bfloat16 loses updates of less than 1/256 of a
    weight. Weights below an adapter do not change and keep their type."""
    return "auto" if order["lora"] and not order["cpu"] else "float32"


def _adapter(order: dict[str, Any]) -> Any:
    if not order["lora"]:
        return None
    from peft import LoraConfig

    task = "SEQ_CLS" if order["method"] == "reward" else "CAUSAL_LM"
    return LoraConfig(r=order["lora"], lora_alpha=2 * order["lora"], target_modules="all-linear", task_type=task)


def _rows(files: list[str], method: str) -> list[dict[str, Any]]:
    """The rows to learn from, with only the columns that the trainer reads."""
    rows = [row for file in files for row in _read(Path(file))]
    kept = [row for row in rows if row.get("resolved", True)]
    if len(kept) < len(rows):
        sys.stderr.write(f"{len(rows) - len(kept)} of {len(rows)} rollouts did not solve their task: left out\n")
    return [{key: row[key] for key in row if key in COLUMNS[method]} for row in kept]


def _read(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise SystemExit(f"{file}:{number} is not a row ({error}): export the rows again") from error


def _maskable(rows: list[dict[str, Any]], tokenizer: Any) -> bool:
    """Whether TRL can restrict the loss to the answers in whole conversations. It needs every answer to be trained on,
    and a chat template that marks answers or that TRL knows."""
    from trl.chat_template_utils import get_training_chat_template

    if any(_silent(message) for row in rows for message in row["messages"]):
        return False
    with suppress(ValueError):
        get_training_chat_template(tokenizer)
        return True
    return False


def _silent(message: dict[str, Any]) -> bool:
    return message.get("train") is False


def _answers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Conversations split into one row for each answer to learn."""
    answers = []
    for row in rows:
        tools = {"tools": row["tools"]} if "tools" in row else {}
        bare = [{key: value for key, value in message.items() if key != "train"} for message in row["messages"]]
        for place, message in enumerate(row["messages"]):
            if message["role"] == "assistant" and not _silent(message):
                answers.append({"prompt": bare[:place], "completion": [bare[place]], **tools})
    return answers


def _dataset(rows: list[dict[str, Any]]) -> Any:
    from datasets import Dataset

    # Without `use_json`, the arguments of each call would get the keys of all other calls.
    return Dataset.from_list(rows, on_mixed_types="use_json")


def _from_scratch(rows: list[dict[str, Any]], order: dict[str, Any], folder: Path) -> str:
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        _part("tiny").make(rows, part, seed=order["seed"], **order["tiny"])
        with suppress(OSError):  # another process of this training has made it
            part.rename(folder)
    return str(folder)


def _part(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    part = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(part)
    return part


def _last_checkpoint(folder: Path) -> str | None:
    """The newest complete checkpoint: a trainer writes `trainer_state.json` last."""
    complete = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return str(max(complete, key=lambda path: _steps(path.name))) if complete else None


def _steps(checkpoint: str | None) -> int:
    """The step number in a checkpoint's name; 0 without a checkpoint."""
    return int(checkpoint.rpartition("-")[2]) if checkpoint else 0


def _let_generate(config: Path) -> None:
    """Turn the cache on again: training turns it off, which would make generation slow. An adapter has no such file."""
    if config.exists():
        settings = json.loads(config.read_text(encoding="utf-8")) | {"use_cache": True}
        config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _draw(history: list[dict[str, Any]], file: Path) -> None:
    """Plot the loss by steps; without matplotlib, do nothing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, label in (("loss", "training"), ("eval_loss", "validation")):
        points = [(entry["step"], entry[name]) for entry in history if name in entry]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
            axes.legend()
    axes.set(xlabel="step", ylabel="loss")
    axes.grid(alpha=0.3)
    figure.savefig(str(file), dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main(sys.argv[1])
