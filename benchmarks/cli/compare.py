"""The commands that hold batches side by side."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.errors import UsageError

if TYPE_CHECKING:
    from benchmarks.reports.comparison import Comparison, Unit

__all__ = ["compare", "curve"]

Unit_ = Annotated[str, typer.Option("--unit", metavar="measurements|nodes|seconds|cost_usd", help="What cost is.")]


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A graded batch.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another batch of the same instances.")],
    unit: Unit_ = "measurements",
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="The most that an instance may cost. Default: the highest cost in the cheaper batch."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
) -> None:
    """Compare two batches instance by instance: as they were, and at equal cost."""
    from benchmarks.reports import comparison

    known = _unit(unit)
    pairs, left_out = comparison.read_pairs(first, second)
    most = comparison.equal_limit(pairs, known) if limit is None else limit
    found = [comparison.compare(pairs, known), comparison.compare(pairs, known, most)]
    if as_json:
        rows = [asdict(each) | {"difference": each.difference, "instances": each.instances} for each in found]
        told = {"unit": unit, "left_out": left_out, "as_run": rows[0], "at_equal_cost": rows[1]}
        sys.stdout.write(json.dumps(told) + "\n")
        return
    sys.stdout.write(f"{len(pairs)} instances are graded in both, {left_out} others are left out\n")
    for title, each in zip(("as they were", f"at no more than {most:g} {unit} an instance"), found, strict=True):
        sys.stdout.write(f"\n{title}\n{_words(each)}")


def curve(
    batches: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Graded batches; several of one solver too.")],
    out: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help=".csv, .png, .svg or .html; repeatable. The last three need [bench]."),
    ],
    unit: Unit_ = "measurements",
) -> None:
    """Plot the share resolved against the cost per instance; for repeated batches also the best of k."""
    from benchmarks.reports import curves, plots

    known = _unit(unit)
    if odd := [file for file in out if file.suffix not in (".csv", ".png", ".svg", ".html")]:
        raise UsageError(f"--out {odd[0]}: name a .csv, .png, .svg or .html file")
    found = curves.read_curves(batches, known)
    for file in out:
        match file.suffix:
            case ".csv":
                file.write_text(curves.as_csv(found), encoding="utf-8")
            case ".html":
                file.write_text(plots.as_html(found, known), encoding="utf-8")
            case suffix:
                file.write_bytes(plots.as_picture(found, known, "png" if suffix == ".png" else "svg"))
        sys.stdout.write(f"{file}\n")


def _unit(name: str) -> Unit:
    from benchmarks.reports.comparison import UNITS

    for unit in UNITS:
        if unit == name:
            return unit
    raise UsageError(f"--unit {name}: give one of {', '.join(UNITS)}")


def _words(each: Comparison) -> str:
    count, (low, high) = each.instances, each.interval
    return (
        f"  A resolves {each.both + each.only_first} of {count}, B {each.both + each.only_second}\n"
        f"  both {each.both}, only A {each.only_first}, only B {each.only_second}, neither {each.neither}\n"
        f"  B less A: {100 * each.difference:+.1f} points (95 % interval {100 * low:+.1f} to {100 * high:+.1f}); "
        f"exact McNemar p = {each.p_value:.3g}\n"
    )
