"""Batch: a folder of attempts, one an instance, that can be stopped and resumed at any time.

`results.jsonl` is the truth, a line for every attempt that ended; `preds.json` is derived from it, and each instance's
folder is its run. `batch.json` says what the batch is of: a folder never mixes two modes, sources or solvers.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent.budget import Usage
from agent.errors import UsageError
from agent.files import write_atomically
from benchmarks.data.instances import Instance, Mode
from benchmarks.data.jsonl_ledger import Ledger, read_rows
from benchmarks.data.predictions import Prediction, write_predictions

if TYPE_CHECKING:
    from agent.settings import Settings

__all__ = [
    "Attempt",
    "Batch",
    "Identity",
    "State",
    "predictions",
    "read_attempts",
    "read_identity",
    "refresh_predictions",
    "settings_digest",
]

State = Literal["done", "limit", "infra", "config"]
"""How an attempt ended. `done`: the solver came to its end; `limit`: a budget ended it; the other states: an outside
failure, which is tried again on resume, or wrong settings, with which nothing else is tried."""

_INDIFFERENT: dict[str, bool | set[str]] = {
    "seed": True,
    "model": {"base_url", "price", "max_concurrent", "stream", "connect_s", "first_token_s", "idle_s", "total_s"},
    "sandbox": {"paranoid"},
    "memory": {"path"},
    "instructions": {"path"},
    "prompts": {"path"},
}
"""Settings that only say where, how fast and how carefully a solver works, and the seed, which a batch keeps itself."""


_PATIENCE = 99
"""Predictions are written at most once in this many times the duration of a write."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a batch was made with."""

    source: str
    mode: Mode
    model: str
    """`model_name_or_path` of its predictions."""
    settings: str = ""
    """`settings_digest`; empty in a batch of a version without it."""
    seed: int | None = None
    """None in a batch of a version without it."""
    suite: str = ""
    """`suite_id` of the source's instances; empty in a batch of a version without it."""


def settings_digest(settings: Settings) -> str:
    """A digest of the settings that decide how the solver works. Settings with their default do not count, so that a
    new setting changes no digest. Of a memory only its presence counts; of instructions and prompts, their texts."""
    dumped = settings.model_dump(mode="json", exclude=_INDIFFERENT, exclude_defaults=True)
    chosen = {key: value for key, value in dumped.items() if value != {}}
    chosen |= {"memory": {**chosen.get("memory", {}), "path": True}} if settings.memory.path else {}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt at one instance."""

    instance_id: str
    state: State
    mode: Mode
    patch: bytes = b""
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the solver reports of its run: status, nodes, measurements, cost_usd, seconds, stop."""
    usage: Usage = field(default_factory=Usage)
    """What the run spent, in all sessions."""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do for the instance."""
        return self.state in ("done", "limit")

    def to_row(self) -> dict[str, Any]:
        """A line of `results.jsonl`; the patch as in predictions."""
        row = {"instance_id": self.instance_id, "state": self.state, "mode": self.mode, "error": self.error}
        patch = self.patch.decode("utf-8", "surrogateescape")
        return {**row, "patch": patch, "facts": dict(self.facts), "usage": asdict(self.usage)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Attempt:
        """The inverse of `to_row`, also for rows of versions without the usage. Raises KeyError for anything else."""
        patch = row["patch"].encode("utf-8", "surrogateescape")
        usage = Usage(**row["usage"]) if "usage" in row else _usage(row["facts"])
        return cls(row["instance_id"], row["state"], row["mode"], patch, row["error"], row["facts"], usage)


def _usage(facts: Mapping[str, Any]) -> Usage:
    """The usage, as far as the facts have it."""
    return Usage(
        model_calls=facts.get("model_calls", 0),
        tokens_in=facts.get("tokens", 0),
        cost_usd=facts.get("cost_usd") or 0.0,
        measurements=facts.get("measurements", 0),
    )


def read_identity(out: Path) -> Identity:
    """Raises UsageError when the folder is not a batch."""
    try:
        return Identity(**json.loads((out / "batch.json").read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{out} is not a batch: no batch.json can be read there") from error


def read_attempts(out: Path) -> dict[str, Attempt]:
    """The last attempt at each instance, in the order of ending.

    Raises:
        UsageError: a line holds none.
    """
    attempts: dict[str, Attempt] = {}
    for attempt in read_rows(out / "results.jsonl", Attempt.from_row):
        attempts.pop(attempt.instance_id, None)
        attempts[attempt.instance_id] = attempt
    return attempts


def predictions(attempts: Iterable[Attempt], model: str) -> list[Prediction]:
    """The predictions of attempts. One that an outside failure ended has one only if it left a patch: it must not count
    as an empty answer."""
    kept = (a for a in attempts if a.settled or a.patch)
    return [Prediction(a.instance_id, model, a.patch, a.mode) for a in kept]


def refresh_predictions(out: Path) -> None:
    """Write `preds.json` of a batch again: a process that was killed may have left it behind.

    Raises:
        UsageError: the folder is not a batch.
    """
    model = read_identity(out).model
    write_predictions(out / "preds.json", predictions(read_attempts(out).values(), model))


class Batch:
    """A folder that is being filled; one process at a time. Not thread-safe.

    Raises:
        UsageError: another process fills it, or it is a batch of something else.
    """

    def __init__(self, out: Path, identity: Identity, now: Callable[[], float] = time.monotonic) -> None:
        self.out = out
        self.identity = identity
        self._now = now
        self._due = now()
        self._ledger = Ledger(out / "results.jsonl")
        if not (out / "batch.json").exists():
            write_atomically(out / "batch.json", json.dumps(asdict(identity), indent=1).encode() + b"\n")
        elif (there := _completed(read_identity(out), identity)) != identity:
            self._ledger.close()
            raise UsageError(
                f"{out} holds {_difference(there, identity)}; take another --out, or begin it as it was begun"
            )
        self.attempts = read_attempts(out)
        self._behind = bool(self.attempts)

    def close(self) -> None:
        """Write the predictions and let another process fill the folder."""
        if self._behind:
            self._predict()
        self._ledger.close()

    def left(self, instances: Iterable[Instance]) -> list[Instance]:
        """The instances that were not attempted, or whose attempt failed for an outside reason."""
        return [i for i in instances if i.id not in self.attempts or not self.attempts[i.id].settled]

    def run_dir(self, instance: Instance) -> Path:
        """The run directory of an instance, begun or not."""
        return self.out / instance.id

    def record(self, attempt: Attempt) -> None:
        """Keep an attempt, and write the predictions unless they were written just now."""
        self._ledger.append(attempt.to_row())
        self.attempts.pop(attempt.instance_id, None)
        self.attempts[attempt.instance_id] = attempt
        self._behind = True
        if self._now() >= self._due:
            self._predict()

    def _predict(self) -> None:
        """Write the predictions, if that takes at most a hundredth of the time."""
        began = self._now()
        write_predictions(self.out / "preds.json", predictions(self.attempts.values(), self.identity.model))
        self._behind, ended = False, self._now()
        self._due = ended + _PATIENCE * (ended - began)


def _completed(there: Identity, wanted: Identity) -> Identity:
    """The identity, with what an older version did not keep taken from the present one."""
    seed = wanted.seed if there.seed is None else there.seed
    settings, suite = there.settings or wanted.settings, there.suite or wanted.suite
    return replace(there, settings=settings, seed=seed, suite=suite)


def _difference(there: Identity, wanted: Identity) -> str:
    old, new = asdict(there), asdict(wanted)
    said = ", ".join(f"{key} {old[key]!r} and not {new[key]!r}" for key in old if old[key] != new[key])
    changed = there.source == wanted.source and there.suite != wanted.suite
    return (
        f"{said} (the instances of {there.source} have changed since, or this version grades them in another way)"
        if changed
        else said
    )
