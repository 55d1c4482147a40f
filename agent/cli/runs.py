"""`ramify runs`: lists the runs of this user; also finds the run that an argument of a command names."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.counting import counted

SHOWN = 20
"""The maximum number of runs listed without `--all`."""
LAST = Path("last")
"""The default of RUN arguments; it stands for `last_run()`."""


def named(context: typer.Context, run: Path) -> Path:
    """Return the directory of a run, given its directory, its name in `ramify runs`, or `last`."""
    from agent.run.paths import find_run, is_run

    if context.resilient_parsing or is_run(run):
        return run
    return last_run() if run == LAST else find_run(run)


def last_run() -> Path:
    """Return the run that changed last. In a git work tree, only runs that began from it count. A run that was refused
    before its base state was measured is skipped, with a message on stderr.

    Raises:
        agent.errors.UsageError: there is no such run.
    """
    from agent.errors import UsageError
    from agent.run.paths import known_runs, name_of, refusal, runs_dir
    from sandboxes.git.foreign import locate

    repository = locate(Path.cwd())
    root = repository.work_tree if repository else None
    refused = ""
    for run in known_runs():
        if root and not _is_of(run, root):
            continue
        reason = refusal(run)
        if reason is None:
            if refused:
                sys.stderr.write(f"{refused}; using the run before it, {name_of(run)}\n")
            return run
        refused = refused or f"the last run, {name_of(run)}, did not begin: {reason}"
    if refused:
        raise UsageError(f"{refused}; `ramify runs` lists the runs")
    remedy = "start one with `ramify fix` or `ramify solve`, or name it: `ramify runs` lists the runs"
    raise UsageError(f"there is no run of {root}; {remedy}" if root else f"there are no runs in {runs_dir()}; {remedy}")


def _is_of(run: Path, root: Path) -> bool:
    """Whether a run began from the work tree with this root."""
    from agent.errors import RamifyError
    from agent.run.paths import checkout_of

    try:
        return checkout_of(run, "").resolve().is_relative_to(root)
    except RamifyError:
        return False


RunDir = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        callback=named,
        help="A run: its directory, its name, or `last`, the most recently changed run of this checkout.",
    ),
]


def _all_named(context: typer.Context, runs: list[Path] | None) -> list[Path] | None:
    return [named(context, run) for run in runs] if runs else None


Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN",
        callback=_all_named,
        help="Runs, by their directories or names, or folders of runs such as batches. Default: the last run of this "
        "checkout.",
    ),
]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the list of runs."""

    run: str
    """Its name, or its directory if it was created with `--out`."""
    repository: str
    """The directory or image that it works on; empty if not known yet."""
    issue: str
    """The first line of the issue, or the goal tests."""
    status: str
    """The status that its last session ended with, or `not ended`, `not begun` or `damaged`."""
    age_s: float
    """Seconds since it last changed."""
    states: int
    cost_usd: float | None
    """None: the price of a call is unknown."""
    directory: str


def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="FOLDER", help="List the runs in these folders, such as batches.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("-a", "--all", help=f"List all runs. Default: the newest {SHOWN}.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List your runs, newest first. Each has its name, repository, issue, status and age."""
    from agent.run.paths import known_runs, newest_first, runs_dir, runs_in

    known = newest_first(runs_in(folders)) if folders else known_runs()
    lines = [_line(directory) for directory in (known if everything else known[:SHOWN])]
    if as_json:
        sys.stdout.write(json.dumps([asdict(line) for line in lines]) + "\n")
        return
    sys.stdout.write(_table(lines) if lines else f"there are no runs in {runs_dir()}\n")
    if len(lines) < len(known):
        again = shlex.join(["ramify", "runs", *map(str, folders or ()), "--all"])
        sys.stdout.write(f"{counted(len(known) - len(lines), 'older run')}: {again}\n")


def _line(directory: Path) -> Line:
    from agent.errors import JournalError
    from agent.run.paths import name_of
    from agent.run.run import Run

    name = name_of(directory)
    age_s = max(0.0, round(time.time() - (directory / "journal.jsonl").stat().st_mtime, 1))
    try:
        with Run.read(directory) as run:
            task = run.started.task if run.started else {}
            status = run.ended.status if run.ended else "not ended" if run.started else "not begun"
            cost = None if run.usage.unpriced_calls else run.usage.cost_usd
            return Line(name, _repository(task), _issue(task), status, age_s, len(run.tree), cost, str(directory))
    except JournalError:
        return Line(name, "", "", "damaged", age_s, 0, None, str(directory))


def _repository(task: dict[str, Any]) -> str:
    workspace = task.get("workspace", {})
    return str(workspace.get("path") or workspace.get("image") or "")


def _issue(task: dict[str, Any]) -> str:
    statement = str(task.get("statement", "")).strip().lstrip("#").strip()
    return statement.splitlines()[0] if statement else ", ".join(task.get("goal_tests", ())) or "failing tests"


def _table(lines: Sequence[Line]) -> str:
    from agent.untrusted import one_line

    rows = [("run", "repository", "status", "age", "issue")]
    rows += [
        (line.run, one_line(Path(line.repository).name), line.status, _age(line.age_s), one_line(line.issue))
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def _age(seconds: float) -> str:
    """Return an age in whole days, hours, minutes or seconds."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"
