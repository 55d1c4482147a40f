"""Candidates per second with two workers, compared with one."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.perf.bench import Bench, Candidates, chosen, unused
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_least
from benchmarks.perf.timing import Sample, interleave

N = 3
GOAL = 1.7


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="seconds per count; default: 5")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """One row: counts with one and with two workers, in turn, on the first repository."""
    repository = chosen(given.repositories)[0]
    candidates = bench.candidates(repository)

    def seconds_each(workers: int) -> float:
        return 1 / rate(candidates, workers, given.seconds)

    ways = {"one": lambda: seconds_each(1), "two": lambda: seconds_each(2)}
    taken = interleave(ways, given.n or N, bench.rng)
    gain = taken["one"].median / taken["two"].median
    what = f"candidates a second, 2 workers beside 1, {os.cpu_count()} cores ({repository.name})"
    ours = f"{_rate(taken['two'])} beside {_rate(taken['one'])} a second"
    yield at_least(what, ours, len(taken["one"].seconds), gain, GOAL, "x as many")


def _rate(each: Sample) -> str:
    return f"{1 / each.median:.1f}"


def rate(candidates: Candidates, workers: int, seconds: float) -> float:
    """Candidates per second with this many workers; candidates in progress are finished."""
    began = time.perf_counter()

    def work() -> int:
        done = 0
        while time.perf_counter() - began < seconds:
            candidates.examine(unused())
            done += 1
        return done

    with ThreadPoolExecutor(workers) as pool:
        done = sum(future.result() for future in [pool.submit(work) for _ in range(workers)])
    return done / (time.perf_counter() - began)


if __name__ == "__main__":
    main(__doc__, rows, options)
