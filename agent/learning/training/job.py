"""One training: TRL, PEFT and transformers on the rows of an export. A program of its own, given its order as a file.

    python job.py ORDER.json

It needs the packages of the extra `[train]` and nothing of Ramify, so that any environment with them can run it, also
under `accelerate launch`. Begun again with the same order it goes on from its last checkpoint.
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

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin are slow on a machine that others use
os.environ.setdefault("HF_HUB_OFFLINE", "1")

COLUMNS = {"sft": {"messages", "prompt", "completion", "tools"}, "dpo": {"prompt", "chosen", "rejected", "tools"}}
COLUMNS |= {"kto": {"prompt", "completion", "label", "tools"}, "reward": COLUMNS["dpo"]}
COLUMNS |= {"grpo": {"prompt", "completion", "tools", "advantage", "weight"}}
"""What a trainer reads of a row."""


def main(order_file: str) -> None:
    """Train, then write the model, `loss.png` and, last of all, `metrics.json` beside the order."""
    order = json.loads(Path(order_file).read_text(encoding="utf-8"))
    out = Path(order_file).parent
    begun = time.time()
    trainer = _trainer(order, out)
    found = _last_checkpoint(out / "checkpoints")
    trainer.train(resume_from_checkpoint=found)
    trainer.save_model(str(out / "model"))  # by all processes: each may hold a part of it
    if not trainer.is_world_process_zero():
        return
    trainer.processing_class.save_pretrained(str(out / "model"))
    _let_generate(out / "model" / "config.json")
    history = _own(trainer.state.log_history)
    _draw(history, out / "loss.png")
    facts = {"steps": trainer.state.global_step, "resumed_at": _steps(found), "seconds": round(time.time() - begun, 1)}
    facts |= {"rows": len(trainer.train_dataset), "parameters": sum(p.numel() for p in trainer.model.parameters())}
    facts |= {"trained": sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)}
    facts["history"] = history
    _write(out / "metrics.json", json.dumps(facts, indent=1) + "\n")


def _own(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the trainer's summary, which after a resumption counts the last session's losses over all steps."""
    return [each for each in history if "train_runtime" not in each]


def _write(file: Path, text: str) -> None:
    """Whole or not at all: who finds it takes the training for done."""
    begun = file.with_name(f".{file.name}.{os.getpid()}")
    begun.write_text(text, encoding="utf-8")
    begun.replace(file)


def _trainer(order: dict[str, Any], out: Path) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, set_seed

    set_seed(order["seed"])
    rows, held_out = (_rows(order[name], order["method"]) for name in ("files", "validation"))
    if not rows:
        raise SystemExit("nothing to learn: none of these rollouts solved its task")
    order["validation"] = order["validation"] if held_out else []
    folder = order["model"] or _made_from_nothing(rows, order, out / "scratch")
    tokenizer = AutoTokenizer.from_pretrained(folder)
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
    given = {"model": model, "args": config, "train_dataset": _dataset(rows), "processing_class": tokenizer}
    if held_out:
        given["eval_dataset"] = _dataset(held_out)
    return _with_rows(kind(**given, peft_config=_adapter(order)), len(rows), order["max_length"])


def _with_rows(trainer: Any, count: int, longest: int) -> Any:
    """The trainer, which has left out by itself those of so many rows of which nothing could be learned."""
    left = len(trainer.train_dataset)
    if left < count:
        sys.stderr.write(f"{count - left} of {count} rows do not fit --max-length {longest}: left out\n")
    if not left:
        raise SystemExit("nothing to learn: give a higher --max-length")
    return trainer


def _config(order: dict[str, Any], out: Path) -> tuple[Any, Any]:
    import trl

    names = {"sft": "SFT", "dpo": "DPO", "kto": "KTO", "reward": "Reward", "grpo": "GRPO"}
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
    if order["method"] == "sft":
        common |= {"completion_only_loss": False} if order["prompt_loss"] else {}
        common |= {"assistant_only_loss": True} if order["assistant_only"] else {}
    elif order["method"] == "grpo":
        del common["max_length"]
        together = order["batch"] * int(os.environ.get("WORLD_SIZE", "1"))
        common |= {"eval_strategy": "no", "steps_per_generation": 1, "num_generations": together}
    elif order["method"] != "reward":
        common |= {"beta": order["beta"]}
    name = names[order["method"]]
    return getattr(trl, f"{name}Config")(**common), getattr(trl, f"{name}Trainer")


def _dtype(order: dict[str, Any]) -> str:
    """Weights that are trained are held in float32, whatever the checkpoint has: an update of less than 1/256 of a
    weight is lost in bfloat16. Below an adapter they stand still, and stay as they are."""
    return "auto" if order["lora"] and not order["cpu"] else "float32"


def _adapter(order: dict[str, Any]) -> Any:
    if not order["lora"]:
        return None
    from peft import LoraConfig

    task = "SEQ_CLS" if order["method"] == "reward" else "CAUSAL_LM"
    return LoraConfig(r=order["lora"], lora_alpha=2 * order["lora"], target_modules="all-linear", task_type=task)


def _rows(files: list[str], method: str) -> list[dict[str, Any]]:
    """Those that may be learned, without the columns that no trainer reads."""
    every = [row for file in files for row in _read(Path(file))]
    found = [row for row in every if row.get("resolved", True)]
    if len(found) < len(every):
        sys.stderr.write(f"{len(every) - len(found)} of {len(every)} rollouts did not solve their task: left out\n")
    return [{key: row[key] for key in row if key in COLUMNS[method]} for row in found]


def _read(file: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise SystemExit(f"{file}:{number} is no row ({error}): export it again") from error


def _maskable(rows: list[dict[str, Any]], tokenizer: Any) -> bool:
    """Whether TRL can put the loss on the answers of whole conversations: on all of each, and with a chat template that
    says which they are, or one that TRL knows."""
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
    """Conversations as a row for each answer that is to be learned."""
    found = []
    for row in rows:
        tools = {"tools": row["tools"]} if "tools" in row else {}
        told = [{key: value for key, value in each.items() if key != "train"} for each in row["messages"]]
        for place, message in enumerate(row["messages"]):
            if message["role"] == "assistant" and not _silent(message):
                found.append({"prompt": told[:place], "completion": [told[place]], **tools})
    return found


def _dataset(rows: list[dict[str, Any]]) -> Any:
    """Arguments of tools as they are: without `use_json`, each call would get the keys of all others."""
    from datasets import Dataset

    return Dataset.from_list(rows, on_mixed_types="use_json")


def _made_from_nothing(rows: list[dict[str, Any]], order: dict[str, Any], folder: Path) -> str:
    if not folder.exists():
        begun = folder.with_name(f"{folder.name}.{os.getpid()}")
        _part("tiny").make(rows, begun, seed=order["seed"], **order["tiny"])
        with suppress(OSError):  # another process of this training was first
            begun.rename(folder)
    return str(folder)


def _part(name: str) -> Any:
    """Another file of this program."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    part = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(part)
    return part


def _last_checkpoint(folder: Path) -> str | None:
    """The newest that is whole: its state is what a trainer writes last."""
    whole = [each for each in folder.glob("checkpoint-*") if (each / "trainer_state.json").is_file()]
    return str(max(whole, key=lambda each: _steps(each.name))) if whole else None


def _steps(checkpoint: str | None) -> int:
    """Those that it was made after, by its name."""
    return int(checkpoint.rpartition("-")[2]) if checkpoint else 0


def _let_generate(config: Path) -> None:
    """Training writes that no cache is used, which would make generation slow. An adapter has no such file."""
    if config.exists():
        known = json.loads(config.read_text(encoding="utf-8")) | {"use_cache": True}
        config.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def _draw(history: list[dict[str, Any]], file: Path) -> None:
    """The loss by steps, as a picture; none where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, label in (("loss", "training"), ("eval_loss", "validation")):
        points = [(each["step"], each[name]) for each in history if name in each]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
            axes.legend()
    axes.set(xlabel="step", ylabel="loss")
    axes.grid(alpha=0.3)
    figure.savefig(str(file), dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main(sys.argv[1])
