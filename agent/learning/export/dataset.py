"""Exports runs to a dataset folder with a manifest and a card.

Invariant: the same runs and options give the same bytes, without times or paths. The exceptions are those of
`agent.learning.export`.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from agent.files import write_atomically
from agent.learning.export import Exporter, NeedsAllRuns, Row
from agent.learning.export.card import card
from agent.learning.export.counting import Tally
from agent.learning.export.hygiene import Hygiene
from agent.learning.export.parquet import require
from agent.learning.export.provenance import journal_digest
from agent.learning.export.registry import FORMATS
from agent.learning.export.splits import Splits, bucket
from agent.learning.export.writing import Files, new_folder
from agent.run.action_log import task_of
from agent.run.credit import success_rate
from agent.run.run import Run

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """The settings of an export."""

    format: str
    exporter: Exporter
    options: dict[str, str] = field(default_factory=dict)
    """The exporter's options as given, for the manifest."""
    splits: Splits = field(default_factory=Splits)
    hygiene: Hygiene = field(default_factory=Hygiene)
    tally: Tally = field(default_factory=Tally)
    parquet: bool = False
    """Also write the rows as Parquet tables."""
    easy_first: bool = False
    """Whether to order tasks by the share of their rollouts that succeeded, the highest first."""


def export(runs: Sequence[Path], settings: ExportSettings, out: Path) -> dict[str, Any]:
    """Write the rows of these runs to the folder `out` and return the manifest. Without rows, nothing is written.

    Raises:
        UsageError: the folder is not empty, or Parquet cannot be written.
        agent.errors.JournalError: a run cannot be read.
    """
    if settings.parquet:
        require()
    folder = new_folder(out)
    with Files(folder, FORMATS[settings.format].form is not None, settings.parquet) as files:
        sources = look(runs, settings, files.write)
    manifest = _manifest(settings, sources, files)
    if not manifest["rows"]:
        folder.rmdir()
        return manifest
    write_atomically(folder / "manifest.json", json.dumps(manifest, indent=1).encode() + b"\n")
    write_atomically(folder / "README.md", card(manifest).encode())
    if len(manifest["counts"].get("policy", ())) > 1:
        log.warning("rows of several policies are mixed: %s", ", ".join(manifest["counts"]["policy"]))
    return manifest


def look(
    runs: Sequence[Path], settings: ExportSettings, write: Callable[[str, Row], None] = lambda split, row: None
) -> list[dict[str, Any]]:
    """Make the rows of these runs, count them in the tally of the settings, and give each with its split to `write`.
    Return the manifest's entry for each run.

    Raises:
        agent.errors.JournalError: a run cannot be read.
    """
    if settings.easy_first:
        runs = _easy_first(runs)
    if isinstance(settings.exporter, NeedsAllRuns) and settings.exporter.needs_all_runs:
        _show(runs, settings.exporter)
    sources = [_source(run, _rows(run, settings, write)) for run in _read(runs)]
    settings.tally.skipped["the run is a copy of another"] += len(runs) - len(sources)
    return sources


def _easy_first(runs: Sequence[Path]) -> list[Path]:
    """The runs by the mean success rate of their task, the highest first, in their own order among equals."""
    tasks, found = dict[Path, str](), defaultdict[str, list[float]](list)
    for path in runs:
        with Run.read(path) as run:
            tasks[path] = task_of(run).id if run.started is not None else ""
            found[tasks[path]] += [rate] if (rate := success_rate(run)) is not None else []
    rates = {task: fmean(seen) if seen else 0.0 for task, seen in found.items()}
    return sorted(runs, key=lambda path: -rates[tasks[path]])


def _show(runs: Sequence[Path], exporter: NeedsAllRuns) -> None:
    for run in _read(runs):
        if run.started is not None and len(run.tree):
            exporter.collect(run)


def _read(runs: Sequence[Path]) -> Iterator[Run]:
    """The runs, without copies of earlier ones."""
    digests = set[str]()
    for path in runs:
        with Run.read(path) as run:
            if run.started is None or journal_digest(run) not in digests:
                digests.add(journal_digest(run))
                yield run


def _rows(run: Run, settings: ExportSettings, write: Callable[[str, Row], None]) -> int:
    """Write the rows of a run and return their number."""
    if run.started is None or not len(run.tree):
        settings.tally.skipped["the run ended before its base state was measured"] += 1
        return 0
    written, form = 0, FORMATS[settings.format].form
    for row in settings.hygiene.check(run, settings.exporter(run)):
        if isinstance(row, str):
            settings.tally.skipped[row] += 1
            continue
        origin = row["provenance"]
        split = settings.splits.of(origin["repository"])
        origin |= {"split": split, "bucket": bucket(origin["repository"])}
        write(split, form(row) if form else row)
        settings.tally.add(split, row)
        written += 1
    return written


def _source(run: Run, rows: int) -> dict[str, Any]:
    name, journal = run.journal.directory.name, journal_digest(run)
    return {"run": name, "journal": journal, "states": len(run.tree), "rows": rows}


def _manifest(settings: ExportSettings, sources: list[dict[str, Any]], files: Files) -> dict[str, Any]:
    tally, hygiene = settings.tally, settings.hygiene
    return {
        "format": settings.format,
        "options": dict(sorted(settings.options.items())),
        "easy_first": settings.easy_first,
        "split": [settings.splits.train, settings.splits.validation, settings.splits.test],
        "files": files.listed(),
        "columns": files.columns,
        "rows": sum(tally.by.get("split", {}).values()),
        "refused": _sorted(tally.skipped),
        "scrubbed": hygiene.scrubs,
        "excluding": hygiene.exclusions.digest,
        "near": hygiene.duplicates.near,
        "licenses_allowed": sorted(hygiene.licences),
        "counts": {key: _sorted(counts) for key, counts in sorted(tally.by.items())},
        "messages": _sorted(tally.trained),
        "runs": sources,
    }


def _sorted(counts: Any) -> dict[str, int]:
    return {key: count for key, count in sorted(counts.items()) if count}
