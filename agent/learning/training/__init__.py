"""Training: what to train, on which rows, checked before a minute of it is spent. `job` does it.

Law: rows of several versions of a policy are mixed only when that is asked for: preferences and outcomes tell of the
policy that they were drawn from.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent.errors import RamifyError, UsageError
from agent.files import write_atomically
from agent.learning.managed_process import gone_after, leaving_by_signals

__all__ = ["METHODS", "Data", "Method", "Plan", "TrainingFailed", "Wanted", "plan", "require_checkpoint", "train"]

Method = Literal["sft", "dpo", "kto", "reward", "grpo"]
METHODS: Mapping[Method, tuple[str, ...]] = {
    "sft": ("sft", "sft-masked", "retro", "revision", "lookahead", "critique", "plan", "trajectories", "edit"),
    "dpo": ("preference", "edit-preference"),
    "kto": ("kto", "edit-kto"),
    "reward": ("preference", "edit-preference"),
    "grpo": ("grpo-tree",),
}
"""The formats of `ramify export` that each takes."""
WHOLE_CONVERSATIONS = ("sft", "sft-masked", "retro", "revision", "trajectories")
"""Formats whose rows are `messages`, of which the assistant's are trained on, those with `"train": false` excepted."""

EDITS = {"edit", "edit-preference", "edit-kto"}
"""Formats for the compact policy, which can begin as a model from nothing."""


END_BYTES = 1 << 20
"""Read at both ends of a checkpoint's files."""


class TrainingFailed(RamifyError):
    """The training program ended with an error."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What can be chosen of a training."""

    model: str = ""
    """A folder with a checkpoint; empty: a tiny one from nothing (`tiny`)."""
    lora: int = 0
    """Rank of an adapter; 0: all weights are trained."""
    epochs: float = 1.0
    max_steps: int = -1
    """Ends earlier than the epochs, where it is above 0."""
    batch: int = 8
    accumulate: int = 1
    rate: float = 1e-4
    warmup_steps: int = 0
    max_length: int = 2048
    """Tokens of a row; what is behind is cut off."""
    beta: float = 0.1
    """Of DPO and KTO: how far the policy may go from the one it began as."""
    prompt_loss: bool = False
    """Of SFT: prompts are learned, too, as a model from nothing needs."""
    group_by_length: bool = False
    """Rows of about the same length go together, so that little is padded."""
    save_steps: int = 200
    log_steps: int = 10
    cpu: bool = False
    seed: int = 0
    tiny: Mapping[str, int] = field(
        default_factory=lambda: {"width": 192, "layers": 4, "vocabulary": 2048, "positions": 4096}
    )


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of an export."""

    folder: Path
    format: str
    policies: tuple[str, ...]
    digest: str
    """Of the manifest and the rows, as they are now."""

    @classmethod
    def read(cls, folder: Path) -> Data:
        """Raises UsageError where the folder is no export with rows to train on."""
        try:
            manifest = json.loads((folder / "manifest.json").read_bytes())
            policies = tuple(sorted(manifest["counts"].get("policy", ())))
            found = cls(folder, manifest["format"], policies, _digest(folder))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder} is not what ramify export wrote: no manifest.json can be read there") from error
        if not found.files("train"):
            raise UsageError(f"{folder} holds no rows in train.jsonl: nothing is left to train on")
        return found

    def files(self, split: str) -> list[str]:
        """The file of a split, where it has rows."""
        path = (self.folder / f"{split}.jsonl").absolute()
        return [str(path)] if path.exists() and path.stat().st_size else []


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for name in ("manifest.json", "train.jsonl", "validation.jsonl"):
        if (path := folder / name).exists():
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _ends(checkpoint: Path) -> str:
    """Names what is in the files of a checkpoint, by how each begins and ends: weights can be many gigabytes."""
    found = hashlib.sha256()
    for path in sorted(each for kind in ("json", "safetensors", "bin") for each in checkpoint.glob(f"*.{kind}")):
        size = path.stat().st_size
        with path.open("rb") as file:
            found.update(f"{path.name} {size}\n".encode() + file.read(END_BYTES))
            file.seek(max(0, size - END_BYTES))
            found.update(file.read())
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a training depends on."""

    method: Method
    data: tuple[Data, ...]
    wanted: Wanted

    def order(self) -> dict[str, Any]:
        """What the training program is given."""
        return {
            "method": self.method,
            "formats": sorted({each.format for each in self.data}),
            "policies": sorted({name for each in self.data for name in each.policies}),
            "exports": [each.digest for each in self.data],
            "checkpoint": _ends(Path(self.wanted.model)) if self.wanted.model else "",
            "files": [file for each in self.data for file in each.files("train")],
            "validation": [file for each in self.data for file in each.files("validation")],
            "assistant_only": self.method == "sft" and self.data[0].format in WHOLE_CONVERSATIONS,
            **asdict(self.wanted),
        }


def plan(method: Method, folders: Sequence[Path], wanted: Wanted, *, mix_policies: bool = False) -> Plan:
    """A training that can be begun.

    Raises:
        UsageError: rows of a format that the method does not take, of formats that differ in shape, or of
            several policies without `mix_policies`; a model that is no folder, or none where one is
            needed; settings that the method does not take, or with which nothing is learned.
    """
    known = Plan(method, tuple(Data.read(folder) for folder in folders), wanted)
    for each in known.data:
        if each.format not in METHODS[method]:
            takes = ", ".join(METHODS[method])
            raise UsageError(f"{each.folder} holds rows of the format {each.format}; {method} takes {takes}")
    _require_use(method, wanted)
    if len({each.format in WHOLE_CONVERSATIONS for each in known.data}) > 1:
        raise UsageError("whole conversations and single answers are rows of different shapes: train on one kind")
    if others := [] if wanted.model else sorted({each.format for each in known.data} - EDITS):
        raise UsageError(
            f"a model from nothing learns edits alone: for rows of the format {others[0]} give --model DIR"
        )
    require_checkpoint(wanted.model)
    policies = known.order()["policies"]
    if len(policies) > 1 and not mix_policies:
        raise UsageError(
            f"the rows are of {len(policies)} policies ({', '.join(policies)}): what one did tells of that one alone; "
            "give --mix-policies to train on all"
        )
    return known


def require_checkpoint(model: str) -> None:
    """Raises UsageError where a model is named that is no folder with a checkpoint."""
    if model and not (Path(model) / "config.json").is_file():
        raise UsageError(f"--model {model} is not a folder with a checkpoint: no config.json is there")


def _require_use(method: Method, wanted: Wanted) -> None:
    """Raises UsageError: see `plan`."""
    if method == "kto" and wanted.group_by_length:
        raise UsageError("--group-by-length: TRL's KTO needs the rows in their own order")
    if method == "grpo" and wanted.batch < 2:
        raise UsageError("--batch 1: TRL's GRPO takes at least 2 rows at a time")
    for flag, given in (("--epochs", wanted.epochs), ("--rate", wanted.rate)):
        if not given > 0:
            raise UsageError(f"{flag} {given:g}: nothing is learned so; give more than 0")
    if wanted.lora and not wanted.model:
        raise UsageError(
            f"--lora {wanted.lora}: below an adapter weights stand still, and those of a model from "
            "nothing are random; give --model DIR, or leave --lora out"
        )


def train(chosen: Plan, out: Path, *, python: Path | None = None, processes: int = 1) -> dict[str, Any]:
    """Run a training to its end in the folder `out`, or resume it there; returns its metrics. One that has come to its
    end is not run again.

    `python` is the interpreter with the packages of `[train]`, this one by default; `processes` above 1 are started by
    accelerate, and on processors by PyTorch.

    Raises:
        UsageError: the folder cannot be made, holds another training, or is being trained in; or `python` cannot be
            run.
        TrainingFailed: the program failed; its own words are on stderr.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be made ({error.strerror}): name another folder") from error
    text = json.dumps(chosen.order(), indent=1, sort_keys=True) + "\n"
    order = out / "order.json"
    if order.exists() and order.read_text(encoding="utf-8") != text:
        raise UsageError(f"{out} holds another training (order.json differs); name a new --out, or remove it")
    write_atomically(order, text.encode())
    return _done(out) or _run(chosen, out, str(python or sys.executable), processes)


def _done(out: Path) -> dict[str, Any] | None:
    """The metrics of a training that has come to its end."""
    if not ((out / "metrics.json").exists() and (out / "model").is_dir()):
        return None
    metrics: dict[str, Any] = json.loads((out / "metrics.json").read_bytes())
    return metrics


def _run(chosen: Plan, out: Path, interpreter: str, processes: int) -> dict[str, Any]:
    launched = _launched(processes, chosen.wanted.cpu)
    command = [interpreter, *launched, str(Path(__file__).parent / "job.py"), str(out / "order.json")]
    with _alone(out) as lock, leaving_by_signals():
        process = _begun(command, lock)
        with gone_after(process):
            code = process.wait()
    if code != 0:
        raise TrainingFailed(
            f"the training ended with {code}: its own words are above; {interpreter} needs the packages of "
            "ramify[train]; the same command goes on from the last checkpoint"
        )
    metrics: dict[str, Any] = json.loads((out / "metrics.json").read_bytes())
    return metrics


@contextmanager
def _alone(out: Path) -> Iterator[int]:
    """A file that is locked as long as this process, or the one that it began, is there."""
    with (out / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{out} is being trained in by another process; wait for it or stop it") from error
        yield file.fileno()


def _begun(command: list[str], lock: int) -> subprocess.Popen[bytes]:
    """What it says goes to stderr: stdout is for the result."""
    env = os.environ | _quiet()
    try:
        return subprocess.Popen(command, env=env, stdout=2, start_new_session=True, pass_fds=(lock,))
    except OSError as error:
        raise UsageError(
            f"{command[0]} cannot be run ({error.strerror}): name one with the packages of ramify[train]"
        ) from error


def _launched(processes: int, cpu: bool) -> list[str]:
    """What begins several processes. On processors accelerate would begin one, whatever number it is told."""
    if processes == 1:
        return []
    if cpu:
        return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(processes)]


def _quiet() -> dict[str, str]:
    return {"TOKENIZERS_PARALLELISM": "false", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
