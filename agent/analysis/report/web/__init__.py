"""The tree of a run as a page for a browser: one file that needs no network, made from the journal.

`src/` is the program of the page; `app.js` is the program with its libraries in one file (`scripts/vendor-web`).
"""

from __future__ import annotations

from pathlib import Path

from agent.analysis.report.web.details import details
from agent.analysis.report.web.document import document, packed
from agent.analysis.report.web.moments import moments
from agent.analysis.report.web.nodes import rows
from agent.analysis.report.web.overview import overview
from agent.run.journal import read_events
from agent.run.paths import journal_of
from agent.run.run import Run

__all__ = ["as_html"]


def as_html(directory: Path, refresh_s: int | None = None) -> bytes:
    """The page of a run, in ASCII; the same journal gives the same bytes. If it is served, the page of a run that has
    not ended reloads itself every `refresh_s` seconds while the reader is idle.

    Raises:
        agent.errors.UsageError: the directory holds no run.
        agent.errors.JournalError: its journal cannot be read.
    """
    journal = journal_of(directory)
    events = list(read_events(journal))
    with Run.read(journal.parent, events) as run:
        facts = {**overview(run), "nodes": list(rows(run)), "moments": list(moments(events))}
        facts["refresh_s"] = refresh_s if run.ended is None else None
        return document("tree", facts["title"], facts, packed(details(run, events)))
