"""The pages for a folder: an index of its batches and runs, and the tree of each run.

Invariant: nothing outside the folder is read, even if a link in it or a name in a journal leads out.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent.analysis.report.web import as_html
from agent.analysis.report.web.document import document
from agent.errors import UsageError
from benchmarks.batch.batch import PLAN, read_identity
from benchmarks.reports.comparison import UNITS, Unit
from benchmarks.reports.curves import read_curves
from benchmarks.reports.report import Line, line_of_run, read_progress, read_report, total

DEPTH = 2
"""How many levels below the folder a run can be: the folder can hold batches, and a batch holds runs."""
BATCH_FILES = ("batch.json", "results.jsonl", "preds.verdicts.jsonl", PLAN)


@dataclass(frozen=True, slots=True)
class Site:
    """The site of a batch, a run, or a folder of batches and runs."""

    folder: Path
    refresh_s: int | None = None
    """Seconds after which a page reloads while its run or batch is in progress; None: never, as there is no server."""

    def pages(self) -> dict[str, Path]:
        """The run of each page other than the index, by the page's name."""
        return {_page(run.relative_to(self.folder)): run for run in self._runs()}

    def index(self) -> bytes:
        """The index: a line for each run, the rates of batches, and their curves.

        Raises:
            UsageError: there is nothing to show.
        """
        pages = self.pages()
        page_of = {run: page for page, run in pages.items()}
        batches = {batch: read_progress(batch, self._holds) for batch in self._batches()}
        rows = [
            _row(line, batch.name, page_of.get(batch / line.instance_id))
            for batch, lines in batches.items()
            for line in lines
        ]
        in_batches = {row["page"] for row in rows}
        alone = {page: line_of_run(run) for page, run in pages.items() if page not in in_batches}
        rows += [_row(line, "", page) for page, line in alone.items() if line]
        if not rows and not batches:
            raise UsageError(
                f"{self.folder} holds neither a batch nor a run: give what `bench run --out` or solve made"
            )
        facts = {
            "title": self.folder.resolve().name,
            "batches": [_summary(*batch) for batch in batches.items()],
            "rows": rows,
            "charts": _charts(list(batches)),
            "refresh_s": self.refresh_s if any(row["state"] == "running" for row in rows) else None,
        }
        return document("batch", f"Ramify: {facts['title']}", facts)

    def tree(self, page: str) -> bytes | None:
        """The page of one run; None if there is no such page.

        Raises:
            agent.errors.JournalError: the run cannot be read.
        """
        run = self.pages().get(page)
        return None if run is None else as_html(run, self.refresh_s)

    def _runs(self) -> Iterator[Path]:
        return (path.parent for path in self._find("journal.jsonl") if self._holds(path))

    def _batches(self) -> Iterator[Path]:
        for file in self._find("batch.json"):
            if all(self._holds(file.with_name(name)) for name in BATCH_FILES):
                yield file.parent

    def _find(self, name: str) -> Iterator[Path]:
        for depth in range(DEPTH + 1):
            yield from sorted(self.folder.glob("*/" * depth + name))

    def _holds(self, path: Path) -> bool:
        """Whether a path, with links resolved, is in the folder."""
        return path.resolve().is_relative_to(self.folder.resolve())


def _page(run: Path) -> str:
    """The name of a run's page: unique, and not in another folder."""
    return f"runs/{quote(os.fsencode(run), safe='')}.html" if run.name else "run.html"


def _summary(batch: Path, lines: Sequence[Line]) -> dict[str, Any]:
    identity = read_identity(batch)
    return {"name": batch.name, "model": identity.model, "mode": identity.mode, "total": total(lines)}


def _row(line: Line, batch: str, page: str | None) -> dict[str, Any]:
    return {**asdict(line), "batch": batch, "page": page, "link": None if page is None else quote(page)}


def _charts(batches: list[Path]) -> dict[Unit, list[dict[str, Any]]]:
    """The charts: for each unit, one of the graded batches with hidden tests and one of those with revealed tests, as
    these cannot be compared. A chart has its curves, or the reason why they cannot be drawn."""
    batches = [batch for batch in batches if any(line.resolved is not None for line in read_report(batch))] or batches
    groups = defaultdict[str, list[Path]](list)
    for batch in batches:
        groups[read_identity(batch).mode].append(batch)
    return {unit: [{"mode": mode, **_chart(groups[mode], unit)} for mode in sorted(groups)] for unit in UNITS}


def _chart(batches: list[Path], unit: Unit) -> dict[str, Any]:
    try:
        return {"curves": [asdict(curve) for curve in read_curves(batches, unit)]}
    except UsageError as error:
        return {"problem": str(error)}
