"""Writes Markdown tables, tables of findings with their goals, and shares with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.perf.timing import Sample, ratio
from benchmarks.reports.report import wilson

HEADINGS = ("measured", "Ramify", "the usual way", "n", "figure", "goal", "met")


@dataclass(frozen=True, slots=True)
class Row:
    """A finding. Timings are a median and, in brackets, the minimum."""

    what: str
    ours: str
    usual: str
    """The same as `ours` for the usual way; "" if there is none."""
    n: int
    figure: str
    """The figure that the goal applies to."""
    goal: str = ""
    met: bool | None = None
    """None: there is no goal, or it could not be tested."""

    def cells(self) -> tuple[str, ...]:
        """The cells, in the order of the headings."""
        met = "" if self.met is None else "yes" if self.met else "**no**"
        return (self.what, self.ours, self.usual, str(self.n), self.figure, self.goal, met)


def less(what: str, ours: Sample, usual: Sample, goal: float) -> Row:
    """A row whose goal is that our side takes at most one `goal`-th of the usual way's time."""
    factor = ratio(usual, ours)
    figure = f"{shortened(factor)}x less"
    return Row(what, str(ours), str(usual), len(ours.seconds), figure, f"{goal:g}x less", factor >= goal)


def at_most(what: str, ours: str, n: int, value: float, goal: float, unit: str, usual: str = "") -> Row:
    """A row whose value may not exceed its goal."""
    figure = shortened(value, up=True)
    return Row(what, ours, usual, n, f"{figure}{unit}", f"at most {goal:g}{unit}", value <= goal)


def at_least(what: str, ours: str, n: int, value: float, goal: float, unit: str) -> Row:
    """A row whose value has to reach its goal."""
    return Row(what, ours, "", n, f"{shortened(value)}{unit}", f"at least {goal:g}{unit}", value >= goal)


def shortened(value: float, *, up: bool = False) -> str:
    """A number with few significant digits, rounded down or up, but never towards a goal: 19.96 becomes 19.9, or
    20.0."""
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    whole = math.ceil if up else math.floor
    return f"{whole(round(value * 10**digits, 6)) / 10**digits:.{digits}f}"


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a table."""
    return table(HEADINGS, (row.cells() for row in rows))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join((head(*headings), *(line(*cells) for cells in rows)))


def head(*headings: str) -> str:
    """The first two lines of a Markdown table."""
    return f"{line(*headings)}\n{line(*['---'] * len(headings))}"


def line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def share(times: int, among: int) -> str:
    """A share with its 95 % score interval (`benchmarks.reports.report.wilson`)."""
    low, high = wilson(times, among)
    return f"{times} of {among} = {times / max(1, among):.2f} [{low:.2f}, {high:.2f}]"
