"""Training a model on exported rows: what to train and on which rows, checked before it starts. `job` does the work.

Invariant: rows of several policy versions are mixed only on request, since preferences and outcomes hold only for the
policy that produced them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent.errors import RamifyError, UsageError
from agent.files import write_atomically
from agent.learning.managed_process import gone_after, leaving_by_signals

__all__ = [
    "METHODS",
    "Data",
    "Method",
    "TrainingFailed",
    "TrainingPlan",
    "TrainingSettings",
    "has_package",
    "plan",
    "require_checkpoint",
    "train",
    "with_adapter",
]

Method = Literal["sft", "dpo", "kto", "reward", "grpo", "prm"]
METHODS: Mapping[Method, tuple[str, ...]] = {
    "sft": (
        "sft",
        "sft-masked",
        "retro",
        "revision",
        "traversal",
        "lookahead",
        "critique",
        "plan",
        "trajectories",
        "edit",
    ),
    "dpo": ("preference", "edit-preference"),
    "kto": ("kto", "edit-kto"),
    "reward": ("preference", "line-preference", "edit-preference"),
    "grpo": ("grpo-tree",),
    "prm": ("verifier",),
}
"""The `ramify export` formats that each method accepts."""
WHOLE_CONVERSATIONS = ("sft", "sft-masked", "retro", "revision", "traversal", "trajectories")
"""Formats with `messages` rows. Every assistant message is trained on, except those with `"train": false`."""
RANK = 16
"""The rank of a chat model's adapter if no other rank is chosen."""
EDITS = {"edit", "edit-preference", "edit-kto"}
"""Formats for the compact policy, which can be trained from scratch."""
PACKAGES = "torch, transformers, trl, peft, accelerate and datasets"
"""The packages that the interpreter needs for training."""
END_BYTES = 1 << 20
"""The number of bytes hashed at each end of a checkpoint's files."""


class TrainingFailed(RamifyError):
    """The training program ended with an error."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of a training."""

    model: str = ""
    """A checkpoint folder; empty: a tiny model from scratch (`tiny`)."""
    lora: int = 0
    """Rank of the adapter to train; 0: train all weights."""
    epochs: float = 1.0
    max_steps: int = -1
    """If above 0, the training stops after this many steps even if `epochs` are not over."""
    batch: int = 8
    accumulate: int = 1
    rate: float = 1e-4
    warmup_steps: int = 0
    max_length: int = 2048
    """The maximum number of tokens of a row; the rest is cut off."""
    beta: float = 0.1
    """DPO and KTO: how strongly the policy is kept close to the one it started from."""
    prompt_loss: bool = False
    """SFT: train on prompts too, as a model from scratch needs."""
    group_by_length: bool = False
    """Batch rows of similar length together, to pad less."""
    in_order: bool = False
    """Take rows in the order of the files, without shuffling."""
    save_steps: int = 200
    log_steps: int = 10
    cpu: bool = False
    seed: int = 0
    tiny: Mapping[str, int] = field(
        default_factory=lambda: {"width": 192, "layers": 4, "vocabulary": 2048, "positions": 4096}
    )


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of one export."""

    folder: Path
    format: str
    policies: tuple[str, ...]
    digest: str
    """A hash of the manifest and the rows as they are now."""

    @classmethod
    def read(cls, folder: Path) -> Data:
        """Read an export's manifest. Raises UsageError if the folder is not an export, or has no rows to train on."""
        try:
            manifest = json.loads((folder / "manifest.json").read_bytes())
            policies = tuple(sorted(manifest["counts"].get("policy", ())))
            data = cls(folder, manifest["format"], policies, _digest(folder))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder} is not a folder of ramify export: it has no readable manifest.json") from error
        if not data.files("train"):
            raise UsageError(f"{folder} has no rows in train.jsonl: there is nothing to train on")
        return data

    def files(self, split: str) -> list[str]:
        """The file of a split; an empty list if the split has no rows."""
        path = (self.folder / f"{split}.jsonl").absolute()
        return [str(path)] if path.exists() and path.stat().st_size else []


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in ("manifest.json", "train.jsonl", "validation.jsonl"):
        if (path := folder / name).exists():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _ends(checkpoint: Path) -> str:
    """A hash of the first and last bytes of each file of a checkpoint, since weights can be many gigabytes."""
    digest = hashlib.sha256()
    for path in sorted(file for kind in ("json", "safetensors", "bin") for file in checkpoint.glob(f"*.{kind}")):
        size = path.stat().st_size
        with path.open("rb") as file:
            digest.update(f"{path.name} {size}\n".encode() + file.read(END_BYTES))
            file.seek(max(0, size - END_BYTES))
            digest.update(file.read())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Everything a training depends on."""

    method: Method
    data: tuple[Data, ...]
    settings: TrainingSettings

    def spec(self) -> dict[str, Any]:
        """The input of the training program."""
        return {
            "method": self.method,
            "formats": sorted({export.format for export in self.data}),
            "policies": sorted({name for export in self.data for name in export.policies}),
            "exports": [export.digest for export in self.data],
            "checkpoint": _ends(Path(self.settings.model)) if self.settings.model else "",
            "files": [file for export in self.data for file in export.files("train")],
            "validation": [file for export in self.data for file in export.files("validation")],
            "assistant_only": self.method == "sft" and self.data[0].format in WHOLE_CONVERSATIONS,
            **asdict(self.settings),
        }


def plan(
    method: Method, folders: Sequence[Path], settings: TrainingSettings, *, mix_policies: bool = False
) -> TrainingPlan:
    """Check a training and return it as a plan that can start.

    Raises:
        UsageError: the method does not accept a format; the formats differ in shape; the rows are of several
            policies and `mix_policies` is off; the model is not a checkpoint folder, or is missing although one is
            needed; or the method does not accept a setting, or would learn nothing with it.
    """
    checked = TrainingPlan(method, tuple(Data.read(folder) for folder in folders), settings)
    for export in checked.data:
        if export.format not in METHODS[method]:
            accepted = ", ".join(METHODS[method])
            raise UsageError(f"{export.folder} has rows of the format {export.format}; {method} takes {accepted}")
    _require_use(method, settings)
    if len({export.format in WHOLE_CONVERSATIONS for export in checked.data}) > 1:
        raise UsageError("whole conversations and single answers are rows of different shapes: train on one kind")
    if others := [] if settings.model else sorted({export.format for export in checked.data} - EDITS):
        raise UsageError(f"a model from scratch learns only edits: for rows of the format {others[0]} give --model DIR")
    require_checkpoint(settings.model)
    policies = checked.spec()["policies"]
    if len(policies) > 1 and not mix_policies:
        raise UsageError(
            f"the rows come from {len(policies)} policies ({', '.join(policies)}), and outcomes hold only for the "
            "policy that produced them; give --mix-policies to train on all"
        )
    return checked


def with_adapter(chosen: TrainingPlan, python: Path | None) -> TrainingPlan:
    """Return the plan changed to train an adapter if it trains a chat policy or a verifier and the interpreter has
    PEFT; otherwise return the plan unchanged."""
    formats = {export.format for export in chosen.data}
    if chosen.settings.model and chosen.method != "reward" and not formats & EDITS:
        with suppress(OSError):
            if has_package(str(python or sys.executable), "peft"):
                return replace(chosen, settings=replace(chosen.settings, lora=RANK))
    return chosen


def has_package(interpreter: str, package: str) -> bool:
    """Whether an interpreter can import a package. Raises OSError if the interpreter cannot be run."""
    looks = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    return subprocess.run([interpreter, "-c", looks, package], capture_output=True, check=False).returncode == 0


def require_checkpoint(model: str) -> None:
    """Raise UsageError if `model` is neither empty nor a folder with a checkpoint."""
    if model and not (Path(model) / "config.json").is_file():
        raise UsageError(f"--model {model} is not a folder with a checkpoint: it has no config.json")


def _require_use(method: Method, settings: TrainingSettings) -> None:
    """Raise UsageError if the method does not accept a setting, or would learn nothing with it."""
    if settings.in_order and settings.group_by_length:
        raise UsageError("--in-order and --group-by-length: only one of them can order the rows; give one")
    if method == "kto" and settings.group_by_length:
        raise UsageError("--group-by-length: TRL's KTO needs the rows in their own order")
    if method == "grpo" and settings.batch < 2:
        raise UsageError("--batch 1: TRL's GRPO takes at least 2 rows at a time")
    for flag, value in (("--epochs", settings.epochs), ("--rate", settings.rate)):
        if not value > 0:
            raise UsageError(f"{flag} {value:g}: nothing would be learned; give more than 0")
    if settings.lora and not settings.model:
        raise UsageError(
            f"--lora {settings.lora}: an adapter leaves the weights below it unchanged, and those of a model from "
            "scratch are random; give --model DIR, or leave --lora out"
        )


def train(chosen: TrainingPlan, out: Path, *, python: Path | None = None, processes: int = 1) -> dict[str, Any]:
    """Run a training to its end in the folder `out`, or resume it there, and return its metrics. A finished training is
    not run again.

    `python` is the interpreter with the packages of `[train]`, by default this one. Several `processes` are started by
    accelerate, or by PyTorch on CPUs.

    Raises:
        UsageError: the folder cannot be made, holds another training, or is in use by one; or `python` cannot be run.
        TrainingFailed: the program failed; its output is on stderr.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be made ({error.strerror}): name another folder") from error
    text = json.dumps(chosen.spec(), indent=1, sort_keys=True) + "\n"
    order = out / "order.json"
    if order.exists() and order.read_text(encoding="utf-8") != text:
        raise UsageError(f"{out} holds another training (order.json differs); name a new --out, or remove the folder")
    write_atomically(order, text.encode())
    if not ((out / "metrics.json").exists() and (out / "model").is_dir()):
        _run(chosen, out, str(python or sys.executable), processes)
    metrics: dict[str, Any] = json.loads((out / "metrics.json").read_bytes())
    return metrics


def _run(chosen: TrainingPlan, out: Path, interpreter: str, processes: int) -> None:
    launcher = _launcher(processes, chosen.settings.cpu)
    command = [interpreter, *launcher, str(Path(__file__).parent / "job.py"), str(out / "order.json")]
    with _locked(out) as lock, leaving_by_signals():
        process = _start(command, lock)
        with gone_after(process):
            code = process.wait()
    if code != 0:
        raise TrainingFailed(
            f"the training ended with {code}: its output is above; {interpreter} needs {PACKAGES}; the same command "
            "resumes from the last checkpoint"
        )


@contextmanager
def _locked(out: Path) -> Iterator[int]:
    """Hold a lock file for as long as this process or the training process runs."""
    with (out / "lock").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process is training in {out}; wait for it or stop it") from error
        yield file.fileno()


def _start(command: list[str], lock: int) -> subprocess.Popen[bytes]:
    """Start the training. Its output goes to stderr: stdout is for the result."""
    env = os.environ | {"TOKENIZERS_PARALLELISM": "false", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    try:
        return subprocess.Popen(command, env=env, stdout=2, start_new_session=True, pass_fds=(lock,))
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be run ({error.strerror}): name a Python with {PACKAGES}") from error


def _launcher(processes: int, cpu: bool) -> list[str]:
    """The arguments that start several processes. On CPUs accelerate starts only one process, whatever number it is
    given."""
    if processes == 1:
        return []
    if cpu:
        return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", str(processes)]
