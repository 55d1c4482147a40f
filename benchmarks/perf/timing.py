"""Times several ways of doing the same thing, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median

Way = Callable[[], float]
"""Does something once, including preparation and cleanup. Returns the seconds that count."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The seconds that one way took, with a value for each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)

    def __str__(self) -> str:
        """The median and, in brackets, the minimum, in milliseconds."""
        return f"{milliseconds(self.median)} ({milliseconds(self.least)}) ms"


def interleave(ways: Mapping[str, Way], n: int, rng: Random, *, warm_up: int = 1) -> dict[str, Sample]:
    """Time each way `n` times, in rounds that each have all ways in random order. The first `warm_up` rounds do not
    count."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(warm_up + n):
        for name in rng.sample(sorted(ways), len(ways)):
            taken = ways[name]()
            if number >= warm_up:
                seconds[name].append(taken)
    return {name: Sample(tuple(values)) for name, values in seconds.items()}


def timed(do: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def ratio(more: Sample, less: Sample) -> float:
    """How many times as long `more` takes as `less`, by their medians."""
    return more.median / less.median


def milliseconds(seconds: float) -> str:
    """The time in milliseconds, with three digits or without a fraction."""
    value = seconds * 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
