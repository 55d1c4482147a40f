"""`ramify bench report` and `ramify bench export`: the results of a batch, as text, a submission or a dataset."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import UsageError
from benchmarks.cli.options import say

COLUMNS = 160
"""The width of output that does not go to a terminal."""


def report(
    batch: Annotated[Path, typer.Argument(metavar="DIR", help="A batch.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    export: Annotated[
        str | None,
        typer.Option(metavar="leaderboard", help="Make the folder for a submission to SWE-bench's leaderboard."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="YYYYMMDD_NAME", help="Where the submission goes; a new folder."),
    ] = None,
    site: Annotated[str, typer.Option(metavar="URL", help="Submission: home page of the system.")] = "",
    paper: Annotated[str, typer.Option(metavar="URL", help="Submission: URL of the report.")] = "",
    authors: Annotated[str, typer.Option(metavar="NAMES", help="Submission: the authors.")] = "",
) -> None:
    """Print the results of a batch. It prints a line for every instance and the totals, or makes a submission to a
    leaderboard."""
    from rich.console import Console

    from benchmarks.batch.batch import read_identity
    from benchmarks.reports import report as reports
    from benchmarks.reports import round_effects, selectors, suspicious_files

    if export is not None:
        _submit(batch, export, out, site, paper, authors)
        return
    identity = read_identity(batch)
    attempts, verdicts = reports.read_graded(batch)
    lines, refined = reports.read_progress(batch), round_effects.refinement(attempts, verdicts)
    choices = selectors.read_choices(batch, attempts)
    standings, steered = selectors.standings(choices, verdicts), suspicious_files.steering(attempts, verdicts)
    if as_json:
        facts = {"batch": asdict(identity), **reports.as_json(lines), "selectors": [asdict(line) for line in standings]}
        facts["steering"] = steered
        sys.stdout.write(json.dumps(facts | ({"refinement": refined.to_json()} if refined else {})) + "\n")
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else COLUMNS)
    console.print(reports.as_table(lines))
    console.print(reports.headline(lines), markup=False)
    if identity.suite:
        console.print(f"suite {identity.suite} of {identity.source}", markup=False)
    refined_text = round_effects.as_text(refined) if refined else ""
    sections = (suspicious_files.as_text(steered), selectors.summary(choices, standings), refined_text)
    for section in filter(None, sections):
        console.print(section, markup=False)


def export(
    batch: Annotated[Path, typer.Argument(metavar="DIR", help="A batch.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DS", help="Where the dataset goes; a new directory.")],
) -> None:
    """Make a dataset of a batch. It has a table of instances and one of rollouts, for `datasets.load_dataset`. Rows to
    train on are made by `ramify export`."""
    from benchmarks.reports.publishing import publish

    for name, rows in publish(batch, out).items():
        sys.stdout.write(f"{rows:>8}  {out / 'data' / name}.parquet\n")


def _submit(batch: Path, form: str, out: Path | None, site: str, paper: str, authors: str) -> None:
    from benchmarks.reports import leaderboard

    if form != "leaderboard" or out is None:
        raise UsageError("give --export leaderboard --out YYYYMMDD_NAME")
    submission = leaderboard.export(batch, out, site=site, report=paper, authors=authors)
    for what, names in (
        ("verdict (ramify bench grade)", submission.ungraded),
        ("trajectory", submission.without_trajectory),
    ):
        if names:
            say(f"no {what} of {', '.join(names)}")
    sys.stdout.write(f"{submission.folder}: {submission.resolved} of {submission.instances} resolved\n")
    say(f"still to fill in: the null values in {submission.folder / 'metadata.yaml'}, and the boxes in its README.md")
