"""Records how long instances took and what they spent, by repository, and estimates later batches from that.

Invariant: a repository gets an estimate only if its instances were worked on by the same model in the same mode; all
others are reported as not known.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles

from agent.counting import counted
from agent.errors import RamifyError
from agent.files import write_atomically
from agent.run.events import Added
from agent.run.journal import read_events
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.batch.runner import Observer
from benchmarks.data.instances import Instance
from sandboxes.cleanup import state_dir

log = logging.getLogger(__name__)

KEPT_BYTES = 4 << 20
"""How many bytes are read from the end of the file. Four times as many stay on disk."""
SHOWN = 5
"""The largest number of repositories that a line names."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one finished instance took."""

    batch: str
    """The folder of its batch."""
    instance_id: str
    repo: str
    """`owner/name`."""
    mode: str
    model: str
    """The policy and the search, as in `Identity.model`."""
    settings: str
    """As `Identity.settings`."""
    seconds: float
    """The duration of its run, without pulling its image."""
    suite_s: float | None
    """Seconds for one run of all its tests in the base state; None: they were not run."""
    model_calls: int
    tokens: int
    cost_usd: float | None
    """None: the price was not known."""
    measurements: int


def measured_file() -> Path:
    """The user's file, shared by all batches."""
    return state_dir() / "measured.jsonl"


def read_measured(file: Path) -> list[Measured]:
    """The newest row of each instance of each batch. Other lines are skipped, as another version may have written
    them."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - KEPT_BYTES))
            lines = opened.read().split(b"\n")
    except OSError:
        return []
    rows: dict[tuple[str, str], Measured] = {}
    for line in lines:
        try:
            row = Measured(**json.loads(line))
        except (ValueError, TypeError):
            continue
        rows[row.batch, row.instance_id] = row
    return list(rows.values())


class Recorder(Observer):
    """An observer of a batch that records what its instances took, including those that ended in earlier sessions."""

    def __init__(self, batch: Batch, instances: Iterable[Instance], file: Path | None = None) -> None:
        self._batch = batch
        self._file = file or measured_file()
        recorded = {row.instance_id for row in read_measured(self._file) if row.batch == str(batch.out)}
        for instance in instances:
            attempt = batch.attempts.get(instance.id)
            if attempt is not None and instance.id not in recorded:
                self.ended(instance, attempt)

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """Record what a finished instance took. If the file cannot be written, only a warning is logged."""
        if attempt is None or not attempt.finished or not instance.repo or "seconds" not in attempt.facts:
            return
        row = _measured(instance, attempt, self._batch)
        try:
            _append(self._file, row)
        except OSError as error:
            log.warning("the time and cost of %s cannot be recorded for later estimates: %s", instance.id, error)


def _measured(instance: Instance, attempt: Attempt, batch: Batch) -> Measured:
    identity, usage = batch.identity, attempt.usage
    return Measured(
        batch=str(batch.out),
        instance_id=instance.id,
        repo=instance.repo,
        mode=attempt.mode,
        model=identity.model,
        settings=identity.settings,
        seconds=float(attempt.facts["seconds"]),
        suite_s=_suite_s(batch.run_dir(instance) / "journal.jsonl"),
        model_calls=usage.model_calls,
        tokens=usage.tokens,
        cost_usd=None if usage.unpriced_calls else usage.cost_usd,
        measurements=usage.measurements,
    )


def _suite_s(journal: Path) -> float | None:
    """How long the tests took in the base state, which is the first node of a run; None: not known."""
    try:
        root = next((event for event in read_events(journal) if isinstance(event, Added)), None)
    except RamifyError:
        return None
    return root.node.report.duration_s if root and root.node.report.outcomes else None


def _append(file: Path, row: Measured) -> None:
    """Append a row in one write, so that rows of other processes do not mix with it; drop the oldest rows if the file
    has grown too large."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and file.stat().st_size > 4 * KEPT_BYTES:
        write_atomically(file, file.read_bytes()[-KEPT_BYTES:].partition(b"\n")[2])
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, json.dumps(asdict(row)).encode() + b"\n")
    finally:
        os.close(descriptor)


def outlook(
    todo: Sequence[Instance],
    identity: Identity,
    rows: Sequence[Measured],
    workers: int | None = None,
    limit_s: float | None = None,
) -> list[str]:
    """An estimate of what the instances may take, from what earlier batches measured in the same repositories, and its
    basis. The quartiles of the repositories are added up. `workers` is how many instances run at the same time; None:
    not known. An instance that took longer than `limit_s` with other settings counts as one that takes so long."""
    if not todo:
        return []
    similar, how = _similar(rows, identity, math.inf if limit_s is None else limit_s)
    of_repo = defaultdict[str, list[Measured]](list)
    for row in similar:
        of_repo[row.repo].append(row)
    counts = Counter(instance.repo for instance in todo)
    known = {repo: count for repo, count in counts.items() if repo in of_repo}
    lines = [f"  {'tests':<13}{suites}"] if (suites := _suites(counts, rows)) else []
    if known:
        lines.append(f"  {'going by':<13}{_sums(known, of_repo, workers)}")
        used = sum(len(of_repo[repo]) for repo in known)
        repositories = counted(len(known), "repository", "repositories")
        lines.append(f"  {'':<13}that rests on {counted(used, 'instance')} of {repositories}, {how}")
    if unknown := _unknown(counts, known, identity):
        lines.append(f"  {'not known':<13}{unknown}")
    return ["from earlier batches:", *lines]


def _similar(rows: Iterable[Measured], identity: Identity, limit_s: float) -> tuple[list[Measured], str]:
    """The rows with the model and mode of a batch, and what they have in common with it. If there are rows with the
    same settings, only those, since other settings had other time limits."""
    same_model = [row for row in rows if (row.model, row.mode) == (identity.model, identity.mode)]
    same = [row for row in same_model if row.settings == identity.settings]
    if same:
        return same, f"by {identity.model} with the same settings"
    limited = [replace(row, seconds=min(row.seconds, limit_s)) for row in same_model]
    return limited, f"by {identity.model} with other settings"


def _sums(known: Mapping[str, int], of_repo: Mapping[str, list[Measured]], workers: int | None) -> str:
    def total(value: Callable[[Measured], float]) -> list[float]:
        of_each = [
            [count * quartile for quartile in _quartiles([value(row) for row in of_repo[repo]])]
            for repo, count in known.items()
        ]
        return [sum(column) for column in zip(*of_each, strict=True)]

    low, middle, high = total(lambda row: row.seconds)
    shared = f" on {workers} workers = {_time(middle / workers)}" if workers and workers > 1 else ""
    parts = [f"about {_time(middle)} of machine time{shared} ({_time(low)} to {_time(high)})"]
    used = [row for repo in known for row in of_repo[repo]]
    if any(row.cost_usd is None for row in used):
        parts.append("dollars not known, as a price was not")
    elif any(row.cost_usd for row in used):
        parts.append(_from_to(total(lambda row: row.cost_usd or 0.0), "dollars", 2))
    for unit, value in _UNITS.items():
        if any(map(value, used)):
            parts.append(_from_to(total(value), unit, 0))
    return "; ".join(parts)


def _quartiles(values: list[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile."""
    return quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


_UNITS: Mapping[str, Callable[[Measured], float]] = {
    "tokens": lambda row: row.tokens,
    "model calls": lambda row: row.model_calls,
    "test runs": lambda row: row.measurements,
}


def _suites(repos: Iterable[str], rows: Iterable[Measured]) -> str:
    """How long the tests of the repositories take, measured with any model; the slowest come first."""
    of_repo = defaultdict[str, list[float]](list)
    for row in rows:
        if row.suite_s is not None:
            of_repo[row.repo].append(row.suite_s)
    medians = sorted(((median(of_repo[repo]), repo) for repo in set(repos) & of_repo.keys()), reverse=True)
    shown = ", ".join(f"{repo} {_time(seconds)}" for seconds, repo in medians[:SHOWN])
    others = f", {len(medians) - SHOWN} others less" if len(medians) > SHOWN else ""
    return f"one run of all takes: {shown}{others}" if medians else ""


def _unknown(counts: Counter[str], known: Mapping[str, int], identity: Identity) -> str:
    """How many instances have no estimate, and in which repositories."""
    unknown = {repo: count for repo, count in counts.items() if repo not in known}
    if not unknown:
        return ""
    names = [repo or "no name" for repo in sorted(unknown, key=lambda repo: (-unknown[repo], repo))]
    shown = ", ".join(names[:SHOWN]) + (f", {len(names) - SHOWN} others" if len(names) > SHOWN else "")
    left_out = "; the figures above leave them out" if known else ""
    return (
        f"{sum(unknown.values())} of {counted(counts.total(), 'instance')}: {identity.model} was never run on their "
        f"repositories with {identity.mode} tests ({shown}){left_out}"
    )


def _from_to(quartiles: list[float], unit: str, digits: int) -> str:
    low, _, high = (f"{quartile:,.{digits}f}" for quartile in quartiles)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
