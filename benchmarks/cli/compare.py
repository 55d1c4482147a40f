"""`ramify bench compare` and `ramify bench curve`: batches side by side."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.counting import counted
from agent.errors import UsageError
from benchmarks.cli.options import Json

if TYPE_CHECKING:
    from benchmarks.reports.comparison import Comparison, Unit


Unit_ = Annotated[
    str,
    typer.Option("--unit", metavar="measurements|nodes|model_calls|tokens|seconds|cost_usd", help="The unit of cost."),
]


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A graded batch.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another batch of the same instances.")],
    unit: Unit_ = "measurements",
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="The maximum cost of an instance. Default: the highest cost in the cheaper batch."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two batches instance by instance. They are compared as they were run, and at equal cost."""
    from benchmarks.reports import comparison

    cost_unit = _unit(unit)
    pairs, left_out = comparison.read_pairs(first, second)
    most = comparison.equal_limit(pairs, cost_unit) if limit is None else limit
    results = [comparison.compare(pairs, cost_unit), comparison.compare(pairs, cost_unit, most)]
    if as_json:
        rows = [asdict(result) | {"difference": result.difference, "instances": result.instances} for result in results]
        facts = {"unit": unit, "left_out": left_out, "as_run": rows[0], "at_equal_cost": rows[1]}
        sys.stdout.write(json.dumps(facts) + "\n")
        return
    graded, others = counted(len(pairs), "instance is", "instances are"), counted(left_out, "other is", "others are")
    sys.stdout.write(f"A: {first}\nB: {second}\n{graded} graded in both, {others} left out\n")
    for title, result in zip(("as run", f"at no more than {most:g} {unit} per instance"), results, strict=True):
        sys.stdout.write(f"\n{title}\n{as_text(result)}")


def curve(
    batches: Annotated[
        list[Path],
        typer.Argument(metavar="DIR", help="Graded batches; several batches of one solver count as repetitions."),
    ],
    out: Annotated[
        list[Path],
        typer.Option(
            "-o", "--out", metavar="FILE", help=".csv, .png, .svg or .html; repeatable. The last three need [bench]."
        ),
    ],
    unit: Unit_ = "measurements",
) -> None:
    """Plot the share resolved against the cost per instance. For repeated batches, the best of k is plotted too."""
    from benchmarks.reports import curves, plots

    cost_unit = _unit(unit)
    if unknown := [file for file in out if file.suffix not in (".csv", ".png", ".svg", ".html")]:
        raise UsageError(f"--out {unknown[0]}: name a .csv, .png, .svg or .html file")
    lines = curves.read_curves(batches, cost_unit)
    for file in out:
        match file.suffix:
            case ".csv":
                file.write_text(curves.as_csv(lines), encoding="utf-8")
            case ".html":
                file.write_text(plots.as_html(lines, cost_unit), encoding="utf-8")
            case suffix:
                file.write_bytes(plots.as_picture(lines, cost_unit, "png" if suffix == ".png" else "svg"))
        sys.stdout.write(f"{file}\n")


def _unit(name: str) -> Unit:
    from benchmarks.reports.comparison import UNITS

    for unit in UNITS:
        if unit == name:
            return unit
    raise UsageError(f"--unit {name}: give one of {', '.join(UNITS)}")


def as_text(result: Comparison) -> str:
    """The comparison as text."""
    count, (low, high) = result.instances, result.interval
    interval = f"95 % interval {100 * low:+.1f} to {100 * high:+.1f}" if low < high else "all pairs alike: no interval"
    return (
        f"  A resolves {result.both + result.only_first} of {count}, B {result.both + result.only_second}\n"
        f"  both {result.both}, only A {result.only_first}, only B {result.only_second}, neither {result.neither}\n"
        f"  B minus A: {100 * result.difference:+.1f} points ({interval}); "
        f"exact McNemar p = {result.p_value:.3g}\n"
    )
