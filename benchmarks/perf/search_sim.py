"""Compares what every search finds on the same landscapes with the same budget, with TreeQuest's beside ours.

    python -m benchmarks.perf.search_sim --seeds 200 --at 50,200

A figure is the true value of the state that a run would answer with, in [0, 1], where 1 is the optimum: the mean over
the seeds and half of its 95% interval. The last line is a difference on equal seeds: on each landscape the best of ours
minus the best of TreeQuest's, chosen by the means that are shown. Nothing is timed, so other load on the machine
changes nothing. `auto` is left out: it continues conversations, which no landscape has.
"""

from __future__ import annotations

import json
import os
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from agent.search.registry import SEARCHES
from benchmarks.perf import venvs
from benchmarks.perf.bench import say
from benchmarks.perf.landscapes import LANDSCAPES
from benchmarks.perf.simulation import Simulation
from benchmarks.perf.table import head, line

TREEQUEST = (
    "StandardMCTS",
    "StandardMCTS, 5 samples",
    "BestFirstSearchAlgo",
    "BestFirstSearchAlgo, 5 samples",
    "ABMCTSA",
)
"""Algorithms of `benchmarks.perf.treequest_side`."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one search on one landscape, one for each seed."""

    search: str
    landscape: str
    seeds: range
    at: tuple[float, ...]
    """The budgets to report at; the last is the limit of a run."""
    python: str = ""
    """The interpreter that has TreeQuest, if the search is one of TreeQuest's."""


Values = tuple[tuple[float, ...], ...]
"""For each seed, the true values of the answers at the budgets."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over seeds."""

    mean: float
    half: float
    """Half the width of its 95% interval, by the normal approximation; 0 for one seed."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(mean(values), 1.96 * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ±{self.half:.3f}"


def found(runs: Runs) -> Values:
    """Make the runs and return their values."""
    if runs.python:
        return _found_by_treequest(runs)
    values = []
    for seed in runs.seeds:
        curve = Simulation(LANDSCAPES[runs.landscape](seed), SEARCHES[runs.search](), runs.at[-1], seed=seed).run()
        values.append(tuple(curve.at(budget) for budget in runs.at))
    return tuple(values)


def _found_by_treequest(runs: Runs) -> Values:
    asked = {"at": runs.at, "runs": [(runs.search, runs.landscape, seed) for seed in runs.seeds]}
    command = [runs.python, "-m", "benchmarks.perf.treequest_side"]
    done = subprocess.run(command, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, check=True)
    return tuple(map(tuple, json.loads(done.stdout)))


class Table:
    """The results as a Markdown table."""

    def __init__(
        self, landscapes: Sequence[str], at: Sequence[float], ours: Sequence[str], theirs: Sequence[str]
    ) -> None:
        self._landscapes = landscapes
        self._at = at
        self._ours = ours
        self._theirs = theirs
        self._values: dict[tuple[str, str], Values] = {}

    def put(self, search: str, landscape: str, values: Values) -> None:
        """Add a cell."""
        self._values[search, landscape] = values

    def lines(self) -> Iterator[str]:
        """A line for each search and budget, then the differences."""
        yield head("budget", "search", *self._landscapes)
        for rank, budget in enumerate(self._at):
            for name in (*self._ours, *self._theirs):
                cells = [str(Figure.of(self._column(name, landscape, rank))) for landscape in self._landscapes]
                yield line(f"{budget:g}", f"TreeQuest {name}" if name in self._theirs else f"`{name}`", *cells)
            if self._theirs:
                differences = [self._difference(landscape, rank) for landscape in self._landscapes]
                yield line(f"{budget:g}", "**best of ours - best of TreeQuest's**", *differences)

    def _difference(self, landscape: str, rank: int) -> str:
        one, other = (self._best(landscape, rank, names) for names in (self._ours, self._theirs))
        pairs = zip(self._column(one, landscape, rank), self._column(other, landscape, rank), strict=True)
        figure = Figure.of([a - b for a, b in pairs])
        says = "level" if abs(figure.mean) <= figure.half else "ahead" if figure.mean > 0 else "behind"
        return f"{says}: {figure.mean:+.3f} ±{figure.half:.3f} ({one}, {other})"

    def _best(self, landscape: str, rank: int, names: Sequence[str]) -> str:
        return max(names, key=lambda name: mean(self._column(name, landscape, rank)))

    def _column(self, name: str, landscape: str, rank: int) -> list[float]:
        return [values[rank] for values in self._values[name, landscape]]


def main() -> None:
    """Read the command line, make the runs in a few processes, and print the table."""
    given = _given()
    ours = given.searches.split(",")
    theirs = () if given.without_treequest else TREEQUEST
    python = str(venvs.interpreter(venvs.TREEQUEST, given.treequest)) if theirs else ""
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    landscapes = given.landscapes.split(",")
    cells = [(name, land) for land in landscapes for name in (*ours, *theirs)]
    every = [Runs(name, land, seeds, given.at, python if name in theirs else "") for name, land in cells]
    table = Table(landscapes, given.at, ours, theirs)
    with ProcessPoolExecutor(given.processes, initializer=os.nice, initargs=(10,)) as pool:
        for runs, values in zip(every, pool.map(found, every), strict=True):
            say(f"{runs.landscape}, {runs.search}: {Figure.of([value[-1] for value in values])}")
            table.put(runs.search, runs.landscape, values)
    print("\n".join(table.lines()))
    print(f"\nSeeds {seeds[0]} to {seeds[-1]}; defaults everywhere but for `samples`; {venvs.TREEQUEST}")


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.search_sim", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="runs of each search on each landscape")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--at", type=_budgets, default=(50, 200), metavar="BUDGETS", help="the last is the limit of a run"
    )
    parser.add_argument("--landscapes", default=",".join(LANDSCAPES), metavar="NAMES")
    parser.add_argument("--searches", default=",".join(name for name in SEARCHES if name != "auto"), metavar="NAMES")
    parser.add_argument("--treequest", default="", metavar="VENV", help="made if missing; default: in the cache")
    parser.add_argument("--without-treequest", action="store_true")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    return parser.parse_args()


def _budgets(text: str) -> tuple[float, ...]:
    return tuple(sorted(float(part) for part in text.split(",")))


if __name__ == "__main__":
    main()
