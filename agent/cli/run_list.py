"""`ramify runs`: the runs on this machine, and which of them a command means."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["LAST", "RunDir", "Runs", "named", "runs"]

SHOWN = 20
"""How many runs are listed without `--all`."""
LAST = Path("last")
"""The run that a command means if none is named."""


def named(context: typer.Context, run: Path) -> Path:
    """The directory of a run that is given as a directory, as the name of one that `ramify runs` lists, or as `last`."""
    from agent.run.paths import find_run, last_run

    if context.resilient_parsing or (run / "journal.jsonl").is_file():
        return run
    return last_run() if run == LAST else find_run(run)


RunDir = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", callback=named, show_default=False, help="A run: its directory or name. Default: the last one."
    ),
]


def _all_named(context: typer.Context, runs: list[Path] | None) -> list[Path]:
    return [named(context, run) for run in runs or ()]


Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN...",
        callback=_all_named,
        help="Runs, by their directories or names, or folders of runs such as batches. Default: the last run.",
    ),
]


@dataclass(frozen=True, slots=True)
class Line:
    """What the list says about a run."""

    run: str
    """Its name, or its directory if it was made with `--out`."""
    when: str
    """When it last changed, in local time."""
    status: str
    """How the last session ended, `not ended`, or `damaged`."""
    states: int
    cost_usd: float | None
    """None: the price of a call is unknown."""
    task: str
    """The first line of the issue, or the goal tests."""
    directory: str


def runs(
    everything: Annotated[
        bool, typer.Option("-a", "--all", help=f"List all runs. Default: the newest {SHOWN}.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List the runs on this machine, the newest first. Runs of batches are listed by `ramify bench report`."""
    from agent.run.paths import known_runs, runs_dir

    known = known_runs()
    lines = [_line(directory) for directory in (known if everything else known[:SHOWN])]
    if as_json:
        sys.stdout.write(json.dumps([asdict(line) for line in lines]) + "\n")
        return
    sys.stdout.write(_table(lines) if lines else f"there are no runs in {runs_dir()}\n")
    if len(lines) < len(known):
        sys.stdout.write(f"{len(known) - len(lines)} older: ramify runs --all\n")


def _line(directory: Path) -> Line:
    from agent.errors import JournalError
    from agent.run.paths import runs_dir
    from agent.run.run import Run

    changed = datetime.fromtimestamp((directory / "journal.jsonl").stat().st_mtime).astimezone()
    name = directory.name if directory.parent == runs_dir() else str(directory)
    when = f"{changed:%Y-%m-%d %H:%M}"
    try:
        with Run.read(directory) as run:
            status = run.ended.status if run.ended else "not ended"
            cost = None if run.usage.unpriced_calls else run.usage.cost_usd
            task = _task(run.started.task if run.started else {})
            return Line(name, when, status, len(run.tree), cost, task, str(directory))
    except JournalError:
        return Line(name, when, "damaged", 0, None, "", str(directory))


def _task(task: dict[str, Any]) -> str:
    statement = str(task.get("statement", "")).strip()
    return statement.splitlines()[0] if statement else ", ".join(task.get("goal_tests", ())) or "failing tests"


def _table(lines: Sequence[Line]) -> str:
    from agent.untrusted import one_line

    rows = [("run", "changed", "status", "states", "cost", "task")]
    for line in lines:
        cost = "unknown" if line.cost_usd is None else f"${line.cost_usd:.2f}"
        rows.append((line.run, line.when, line.status, str(line.states), cost, one_line(line.task)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )
