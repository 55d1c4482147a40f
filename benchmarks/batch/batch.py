"""Keep a batch: a folder with one attempt for each instance, which can be interrupted and resumed at any time.

`results.jsonl` is authoritative: it has a line for every attempt that ended. `preds.json` is derived from it, and each
instance's folder is its run. `batch.json` identifies the batch: a folder never mixes two modes, sources or solvers.
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
from agent.counting import shown
from agent.errors import UsageError
from agent.files import write_atomically
from agent.redaction import redacted
from benchmarks.data.instances import Instance, Mode
from benchmarks.data.jsonl_ledger import Ledger, read_rows
from benchmarks.data.predictions import Prediction, write_predictions

if TYPE_CHECKING:
    from agent.settings import Settings


State = Literal["done", "limit", "infra", "broken", "config"]
"""How an attempt ended: the solver finished; a limit stopped it; something outside failed (the next session tries it
again); the set is wrong (it is tried again once its checkout can be made); or the settings are wrong (no other instance
was tried)."""

PLAN = "instances.json"
"""The file with the ids of the instances that the last session was started for."""
_PATIENCE = 99
"""How long to wait before writing the predictions again, as a multiple of how long the last write took."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a batch: which instances it holds, and which solver works on them."""

    source: str
    mode: Mode
    model: str
    """`model_name_or_path` of its predictions."""
    settings: str = ""
    """`settings_digest`; empty in a folder from a version that did not record it."""
    seed: int | None = None
    """None: not recorded."""
    suite: str = ""
    """`suite_id` of the source's instances; empty: not recorded."""
    recipe: str = ""
    """The recipe that the settings are based on; empty: none."""
    chosen: Mapping[str, Any] | None = field(default=None, compare=False)
    """`chosen_settings`, without secrets; None in a folder from a version that did not record them."""

    @classmethod
    def of(cls, source: str, mode: Mode, model: str, suite: str, settings: Settings) -> Identity:
        """The identity of a batch that is started with these settings."""
        chosen = json.loads(redacted(json.dumps(chosen_settings(settings))))
        return cls(source, mode, model, settings_digest(settings), settings.seed, suite, settings.recipe or "", chosen)


def settings_digest(settings: Settings) -> str:
    """Twelve hex digits that identify the settings of a solver (`chosen_settings`)."""
    return hashlib.sha256(json.dumps(chosen_settings(settings), sort_keys=True).encode()).hexdigest()[:12]


def chosen_settings(settings: Settings) -> dict[str, Any]:
    """The settings of a solver, without its seed and the name of its recipe, which the identity of a batch holds by
    itself. Settings with their default values are left out, so that a new setting does not change the digest. Of a
    memory only its presence counts, not its path; of instructions and prompts their texts, not their paths."""
    from agent.settings import OPERATIONAL

    apart = {**OPERATIONAL, "seed": True, "recipe": True}
    dumped = settings.model_dump(mode="json", exclude=apart, exclude_defaults=True)
    chosen = {key: value for key, value in dumped.items() if value != {}}
    return chosen | ({"memory": {**chosen.get("memory", {}), "path": True}} if settings.memory.path else {})


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt at an instance."""

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
    def finished(self) -> bool:
        """Whether nothing is left to do for the instance."""
        return self.state in ("done", "limit")

    def to_row(self) -> dict[str, Any]:
        """The line of `results.jsonl`. The patch is encoded as in predictions."""
        row = {"instance_id": self.instance_id, "state": self.state, "mode": self.mode, "error": self.error}
        patch = self.patch.decode("utf-8", "surrogateescape")
        return {**row, "patch": patch, "facts": dict(self.facts), "usage": asdict(self.usage)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Attempt:
        """The attempt of a row that `to_row` wrote, in this version or one that had no usage. Raises KeyError for any
        other row."""
        patch = row["patch"].encode("utf-8", "surrogateescape")
        usage = Usage(**row["usage"]) if "usage" in row else _usage(row["facts"])
        return cls(row["instance_id"], row["state"], row["mode"], patch, row["error"], row["facts"], usage)


def _usage(facts: Mapping[str, Any]) -> Usage:
    return Usage(
        model_calls=facts.get("model_calls", 0),
        tokens_in=facts.get("tokens", 0),
        cost_usd=facts.get("cost_usd") or 0.0,
        measurements=facts.get("measurements", 0),
    )


def read_identity(out: Path) -> Identity:
    """The identity of a batch. Raises UsageError if the folder is not a batch."""
    try:
        return Identity(**json.loads((out / "batch.json").read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{out} is not a batch: no batch.json can be read there") from error


def read_attempts(out: Path) -> dict[str, Attempt]:
    """The last attempt at each instance, in the order in which they ended.

    Raises:
        UsageError: a line is not an attempt.
    """
    attempts: dict[str, Attempt] = {}
    for attempt in read_rows(out / "results.jsonl", Attempt.from_row):
        attempts.pop(attempt.instance_id, None)
        attempts[attempt.instance_id] = attempt
    return attempts


def read_plan(out: Path) -> list[str]:
    """The instances that the last session was started for; none in a folder from a version that did not record them."""
    try:
        return [str(name) for name in json.loads((out / PLAN).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []


def predictions(attempts: Iterable[Attempt], model: str) -> list[Prediction]:
    """The predictions of these attempts. An attempt that failed for outside reasons has one only if it left a patch, so
    that it does not count as an empty answer."""
    kept = (a for a in attempts if a.finished or a.patch)
    return [Prediction(a.instance_id, model, a.patch, a.mode) for a in kept]


def refresh_predictions(out: Path) -> None:
    """Rewrite `preds.json` of a batch from its results, since it may be out of date after a kill.

    Raises:
        UsageError: the folder is not a batch.
    """
    model = read_identity(out).model
    write_predictions(out / "preds.json", predictions(read_attempts(out).values(), model))


class Batch:
    """A batch that is being filled, by one process at a time. Not thread-safe.

    Raises:
        UsageError: another process fills the folder, or it holds a batch with another identity.
    """

    def __init__(self, out: Path, identity: Identity, now: Callable[[], float] = time.monotonic) -> None:
        self.out = out
        self.identity = identity
        self._now = now
        self._due = now()
        if (
            not (out / "batch.json").exists()
            and out.is_dir()
            and any(not each.name.startswith(".") for each in out.iterdir())
        ):
            raise UsageError(f"--out {out} is not empty, and holds no batch; name a new folder")
        self._ledger = Ledger(out / "results.jsonl")
        if not (out / "batch.json").exists():
            write_atomically(out / "batch.json", json.dumps(asdict(identity), indent=1).encode() + b"\n")
        elif (present := _completed(read_identity(out), identity)) != identity:
            self._ledger.close()
            raise UsageError(
                f"{out} holds {_difference(present, identity)}; name another --out, or give the original source and "
                "settings"
            )
        self.attempts = read_attempts(out)
        self._behind = bool(self.attempts)

    def close(self) -> None:
        """Write the predictions and let another process fill the folder."""
        if self._behind:
            self._predict()
        self._ledger.close()

    def plan(self, instances: Iterable[Instance]) -> None:
        """Record which instances the session is for."""
        write_atomically(self.out / PLAN, json.dumps([instance.id for instance in instances]).encode() + b"\n")

    def left(self, instances: Iterable[Instance]) -> list[Instance]:
        """The instances that have not ended yet, or failed for outside reasons."""
        return [i for i in instances if i.id not in self.attempts or not self.attempts[i.id].finished]

    def broken(self, instance: Instance) -> bool:
        """Whether the last attempt at the instance failed because the set is wrong about it."""
        return instance.id in self.attempts and self.attempts[instance.id].state == "broken"

    def run_dir(self, instance: Instance) -> Path:
        """The folder of the instance's run, which need not exist yet."""
        return self.out / instance.id

    def record(self, attempt: Attempt) -> None:
        """Record an attempt, and update the predictions unless they were just written."""
        self._ledger.append(attempt.to_row())
        self.attempts.pop(attempt.instance_id, None)
        self.attempts[attempt.instance_id] = attempt
        self._behind = True
        if self._now() >= self._due:
            self._predict()

    def _predict(self) -> None:
        """Write the predictions. The whole file is written, which takes longer as it grows, so `_due` keeps the time
        spent on this at a hundredth of the total."""
        began = self._now()
        write_predictions(self.out / "preds.json", predictions(self.attempts.values(), self.identity.model))
        self._behind, ended = False, self._now()
        self._due = ended + _PATIENCE * (ended - began)


def _completed(present: Identity, requested: Identity) -> Identity:
    """The identity of a batch in which the fields that an older version did not record are as requested."""
    seed = requested.seed if present.seed is None else present.seed
    settings, suite = present.settings or requested.settings, present.suite or requested.suite
    return replace(present, settings=settings, seed=seed, suite=suite)


def _difference(present: Identity, requested: Identity) -> str:
    old, new = asdict(present), asdict(requested)
    differing = [key for key in old if key != "chosen" and old[key] != new[key]]
    parts = [f"{key} {old[key]!r} and not {new[key]!r}" for key in differing if key != "settings"]
    if "settings" in differing:
        parts.append(f"other settings: {_differing_settings(present, requested)}")
    text = ", ".join(parts)
    if present.source == requested.source and present.suite != requested.suite:
        text += f" (the instances of {present.source} have changed since, or this version grades them differently)"
    return text


def _differing_settings(present: Identity, requested: Identity) -> str:
    """Each setting that differs, with both values."""
    from agent.build.same_run import SHOWN
    from agent.recipes import flattened
    from agent.settings import Settings

    if present.chosen is None or requested.chosen is None:
        return f"it only recorded their digest, {present.settings} and not {requested.settings}"
    defaults = flattened(Settings().model_dump(mode="json"))
    before, now = defaults | flattened(present.chosen), defaults | flattened(requested.chosen)
    differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    pairs = ((key, shown(before.get(key), SHOWN), shown(now.get(key), SHOWN)) for key in differing)
    return ", ".join(f"{key} {old} and not {new}" for key, old, new in pairs)
