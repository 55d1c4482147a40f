"""`ramify bench export`: a whole batch as a dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["export"]


def export(
    batch: Annotated[Path, typer.Argument(metavar="DIR", help="A batch.")],
    out: Annotated[Path, typer.Option(metavar="DS", help="Where the dataset goes; a new directory.")],
) -> None:
    """Make a dataset of a batch, with a table of instances and one of rollouts, for `datasets.load_dataset`. Rows to
    train on are made by `ramify export`."""
    from benchmarks.reports.publishing import publish

    for name, rows in publish(batch, out).items():
        sys.stdout.write(f"{rows:>8}  {out / 'data' / name}.parquet\n")
