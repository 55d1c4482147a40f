"""What earlier runs left on this machine, and its removal. Journals and patches are never removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from agent.errors import JournalError
from agent.places import runs_dir
from agent.run import Run
from sandboxes import SandboxUnavailable
from sandboxes.engine import clean as clean_engine

__all__ = ["clean"]

WEEK_S = 7 * 24 * 3600


def clean(*, states: bool) -> tuple[str, ...]:
    """Remove containers whose process is gone, and Docker volumes that nothing used for a week; with `states`, the
    volumes at once and the states of runs that have ended. What was removed, a line each.
    """
    removed = [f"{name} (docker)" for name in _docker(0 if states else WEEK_S)]
    if states:
        removed += [str(store) for store in _stores() if _remove(store)]
    return tuple(removed)


def _docker(older_than_s: float) -> tuple[str, ...]:
    try:
        return clean_engine(older_than_s)
    except SandboxUnavailable:
        return ()


def _stores() -> Iterator[Path]:
    """State stores of runs that have ended and that no process holds."""
    for journal in sorted(runs_dir().glob("*/journal.jsonl")):
        try:
            with Run.open(journal.parent) as run:
                if run.ended is not None and (journal.parent / "store").is_dir():
                    yield journal.parent / "store"
        except JournalError:
            continue


def _remove(store: Path) -> bool:
    shutil.rmtree(store, ignore_errors=True)
    return not store.exists()
