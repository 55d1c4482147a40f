"""The directories of runs, and the names in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from agent.budget import Stop
from agent.errors import JournalError, UsageError
from agent.run.events import Added, Ended, Started
from agent.run.journal import read_events
from agent.task import load_task
from sandboxes.cleanup import state_dir

STORE = "store"
"""The store of a run's states, in its directory."""
PARTS = "parts"
"""The runs of delegated sub-issues, in a run's directory."""


def name_of(run: Path) -> str:
    """Return the name of a run in `ramify runs`: its name in `runs_dir()`, or its directory."""
    return run.name if run.parent == runs_dir() else str(run)


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run."""
    return (directory / "journal.jsonl").is_file()


def is_begun(run: Path) -> bool:
    """Whether a run got as far as its base state, so that it can be resumed."""
    return any(isinstance(event, Started) for event in read_events(journal_of(run)))


def runs_dir() -> Path:
    """The directory for runs without `--out`."""
    return state_dir() / "runs"


def _elsewhere() -> Path:
    """The file that names the runs which were made with `--out`, a line each."""
    return state_dir() / "runs.txt"


def note_run(run: Path) -> None:
    """Note a run outside `runs_dir()`, so that `known_runs` finds it. Does nothing if the note cannot be written."""
    place = os.path.abspath(run)  # noqa: PTH100  # without `..`
    if Path(place).parent == runs_dir():
        return
    with suppress(OSError):
        _elsewhere().parent.mkdir(parents=True, exist_ok=True)
        with _elsewhere().open("ab") as file:
            file.write(os.fsencode(place) + b"\n")


def known_runs() -> list[Path]:
    """Return the runs in `runs_dir()` and the noted ones, the most recently changed first."""
    noted = map(Path, map(os.fsdecode, _elsewhere().read_bytes().splitlines())) if _elsewhere().is_file() else ()
    return newest_first((*(journal.parent for journal in runs_dir().glob("*/journal.jsonl")), *noted))


def newest_first(runs: Iterable[Path]) -> list[Path]:
    """Return the directories that hold a run, the most recently changed first."""
    changed = dict[Path, float]()
    for run in runs:
        with suppress(OSError):  # it is being removed
            if is_run(run):
                changed[run] = (run / "journal.jsonl").stat().st_mtime
    return sorted(changed, key=lambda run: changed[run], reverse=True)


def runs_in(paths: Sequence[Path]) -> list[Path]:
    """Return the run directories among and directly below these paths, sorted by name for each path, without repeats.

    Raises:
        agent.errors.UsageError: a path holds no run.
    """
    runs: dict[Path, None] = {}
    for path in (path.absolute() for path in paths):  # `.` has no name
        inside = [path] if is_run(path) else [p.parent for p in path.glob("*/journal.jsonl")]
        if not inside:
            problem = "is not a run and contains no runs" if path.is_dir() else "does not exist"
            raise UsageError(f"{path} {problem}; `ramify runs` lists the runs")
        runs.update(dict.fromkeys(sorted(inside)))
    return list(runs)


def refusal(run: Path) -> str | None:
    """Return why a run cannot be shown or resumed: before its base state was measured, an error ended it or nothing was
    recorded. None if it can."""
    last = None
    try:
        for last in read_events(run / "journal.jsonl"):
            if isinstance(last, Added):
                return None
    except JournalError:
        return None
    if last is None:
        return "it recorded nothing"
    return (last.reason or "an error") if isinstance(last, Ended) and last.stop == Stop.FAILED.name else None


def find_run(name: Path) -> Path:
    """Return the run with this name, the newest if there are several; `name` itself if there is none."""
    return next((run for run in known_runs() if run.name == str(name)), name)


def new_run_dir(wanted: Path | None, name: str) -> Path:
    """Return the directory for a new run: `wanted`, or one under `runs_dir()` named by the time and the issue. A run
    directory with an empty journal is reused.

    Raises:
        agent.errors.UsageError: it exists and is not empty.
    """
    if wanted is None:
        wanted = runs_dir() / f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{name}"
    journal = wanted / "journal.jsonl"
    if journal.is_file() and not journal.stat().st_size:
        return wanted
    if journal.exists():
        raise UsageError(f"the directory {wanted} holds a run; continue it with: ramify resume {wanted}")
    if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        raise UsageError(f"the directory {wanted} exists and is not empty; name a new one")
    return wanted


def slug(text: str) -> str:
    """A directory name made of the first words of a text."""
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return "-".join(words[:6])[:50].strip("-") or "issue"


def begun(run: Path) -> Started:
    """Return the event with which a run began.

    Raises:
        agent.errors.UsageError: there is no such run, or it ended before its base state was made.
    """
    for event in read_events(journal_of(run)):
        if isinstance(event, Started):
            return event
    raise UsageError(f"{run}: the run ended before its base state was made; start it again with solve")


def checkout_of(run: Path, otherwise: str) -> Path:
    """Return the checkout that a run began from. `otherwise` is the remedy that the error names.

    Raises:
        agent.errors.UsageError: there is no such run, or it began from an image.
    """
    path = load_task(begun(run).task).workspace.path
    if path is None:
        raise UsageError(f"{run} did not begin from a checkout; {otherwise}")
    return path


def store_of(run: Path) -> Path:
    """The store of a run's states. A delegated run uses the store of the run that delegates."""
    above = run.absolute().parents
    is_part = len(above) > 2 and above[1].name == PARTS and is_run(above[2])
    return (above[2] if is_part else run) / STORE


def journal_of(run: Path) -> Path:
    """The journal of an existing run.

    Raises:
        agent.errors.UsageError: the directory holds no run.
    """
    journal = run / "journal.jsonl"
    if (run / "batch.json").is_file():
        raise UsageError(
            f"{run} is a batch, and each folder in it is a run: list them with `ramify runs {run}`, or show all in a "
            f"browser with `ramify serve-report {run}`; `ramify bench report {run}` prints the results"
        )
    if not run.exists():
        raise UsageError(f"there is no run {run}; `ramify runs` lists the runs")
    if not journal.is_file():
        raise UsageError(f"{run} is not a run: it has no journal.jsonl; `ramify runs` lists the runs")
    return journal
