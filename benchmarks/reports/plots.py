"""Draws curves: as a PNG, or as one HTML file with the drawing and a table. Needs the extra `[bench]`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from io import BytesIO
from typing import Any, Literal

from agent.errors import UsageError
from benchmarks.reports.comparison import Unit
from benchmarks.reports.curves import Curve

_UNITS: dict[Unit, str] = {
    "measurements": "test runs an instance",
    "model_calls": "model requests an instance",
    "tokens": "tokens an instance",
    "nodes": "states an instance",
    "seconds": "seconds an instance",
    "cost_usd": "dollars an instance",
}


def as_picture(curves: Sequence[Curve], unit: Unit, kind: Literal["png", "svg"]) -> bytes:
    """Draw the curves with their 95 % intervals: steps for a batch, points for repeated ones. The same curves give the
    same bytes.

    Raises:
        UsageError: matplotlib is not installed.
    """
    rc_context, figure_of = _matplotlib()
    with rc_context({"svg.hashsalt": "ramify", "font.size": 9}):
        figure = figure_of(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.subplots()
        for curve in curves:
            _draw(axes, curve)
        axes.set(xlabel=_UNITS[unit], ylabel=f"resolved ({curves[0].mode} tests)", ylim=(0, 1))
        axes.grid(alpha=0.3)
        axes.legend(loc="best", fontsize=8)
        out = BytesIO()
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return out.getvalue()


def as_html(curves: Sequence[Curve], unit: Unit) -> str:
    """A self-contained file with the drawing and a table of its points."""
    drawing = as_picture(curves, unit, "svg").decode()
    rows = "\n".join(
        f"<tr><td>{escape(curve.name)}<td>{curve.instances}<td>{point.budget:g}<td>{point.rate:.1%}"
        f"<td>{point.low:.1%} to {point.high:.1%}"
        for curve in curves
        for point in curve.points
    )
    head = f"<tr><th>solver<th>instances<th>{_UNITS[unit]}<th>resolved<th>95 % interval"
    style = "body{font:14px sans-serif;max-width:60rem;margin:2rem auto}td,th{padding:.2rem .8rem;text-align:left}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Resolved against budget</title><style>{style}</style>"
        f"<h1>Resolved against budget</h1>{drawing[drawing.index('<svg') :]}<table>{head}\n{rows}\n</table></html>\n"
    )


def _draw(axes: Any, curve: Curve) -> None:
    budgets = [point.budget for point in curve.points]
    where = {} if curve.repeated else {"drawstyle": "steps-post"}
    rates = [point.rate for point in curve.points]
    (line,) = axes.plot(budgets, rates, marker="o", markersize=3, label=curve.name, **where)
    low, high = [point.low for point in curve.points], [point.high for point in curve.points]
    step = {} if curve.repeated else {"step": "post"}
    axes.fill_between(budgets, low, high, alpha=0.12, color=line.get_color(), linewidth=0, **step)


def _matplotlib() -> tuple[Any, Any]:
    """The parts of matplotlib that draw, without the global state of `pyplot`."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("a picture needs matplotlib: pip install matplotlib; a .csv file does not") from error
    return rc_context, Figure
