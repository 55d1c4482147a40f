"""Compares two batches instance by instance: which solver resolves more, and can the difference be chance?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Literal, TypeVar, get_args

from agent.errors import UsageError
from benchmarks.batch.batch import read_identity
from benchmarks.reports.report import Line, read_report

Unit = Literal["measurements", "nodes", "model_calls", "tokens", "seconds", "cost_usd"]
"""The unit of cost."""
UNITS: tuple[Unit, ...] = get_args(Unit)
DRAWS = 4_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pair:
    """One instance that is graded in both batches."""

    first: Line
    second: Line


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many of the same instances two batches resolve."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float
    """From `mcnemar`."""
    interval: tuple[float, float]
    """The 95 % interval of the difference: percentiles of a bootstrap over instances that keeps pairs together."""
    limit: float | None = None
    """The maximum cost at which an instance counts as resolved; None: no limit."""

    @property
    def instances(self) -> int:
        """The number of pairs."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def difference(self) -> float:
        """The rate of the second batch minus that of the first, in [-1, 1]."""
        return (self.only_second - self.only_first) / self.instances


def read_pairs(first: Path, second: Path) -> tuple[list[Pair], int]:
    """The instances that are graded in both batches, and the number of other instances in either.

    Raises:
        UsageError: a folder is not a batch, the batches have different modes, or no instance is graded in both.
    """
    one, other = read_identity(first), read_identity(second)
    if one.mode != other.mode:
        raise UsageError(
            f"{first} was run with {one.mode} tests, {second} with {other.mode} ones: they cannot be compared"
        )
    of_first, of_second = read_report(first), {line.instance_id: line for line in read_report(second)}
    pairs = [Pair(line, of_second[line.instance_id]) for line in of_first if line.instance_id in of_second]
    graded = [pair for pair in pairs if pair.first.resolved is not None and pair.second.resolved is not None]
    if not graded:
        raise UsageError(f"no instance is graded in both {first} and {second}: ramify bench grade DIR --source SOURCE")
    return graded, len({line.instance_id for line in of_first} | of_second.keys()) - len(graded)


def compare(pairs: Sequence[Pair], unit: Unit = "measurements", limit: float | None = None) -> Comparison:
    """Compare two batches. With a `limit`, instances that cost more count as not resolved."""
    won = [(resolved(pair.first, unit, limit), resolved(pair.second, unit, limit)) for pair in pairs]
    only_first, only_second = won.count((True, False)), won.count((False, True))
    return Comparison(
        both=won.count((True, True)),
        only_first=only_first,
        only_second=only_second,
        neither=won.count((False, False)),
        p_value=mcnemar(only_first, only_second),
        interval=bootstrap([after - before for before, after in won], fmean, DRAWS),
        limit=limit,
    )


def equal_limit(pairs: Sequence[Pair], unit: Unit) -> float:
    """The lower of the two batches' highest costs of an instance.

    Raises:
        UsageError: the cost of an instance is unknown.
    """
    return min(max(spent(pair.first, unit) for pair in pairs), max(spent(pair.second, unit) for pair in pairs))


def resolved(line: Line, unit: Unit, limit: float | None) -> bool:
    """Whether the instance was resolved at a cost of at most `limit`."""
    return line.resolved is True and (limit is None or spent(line, unit) <= limit)


def spent(line: Line, unit: Unit) -> float:
    """The cost of the instance.

    Raises:
        UsageError: it is unknown.
    """
    facts: Mapping[str, float | None] = {name: getattr(line, name) for name in UNITS}
    if (cost := facts[unit]) is None:
        raise UsageError(f"the cost of {line.instance_id} in dollars is unknown: compare by another --unit")
    return cost


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p-value of McNemar's test: the probability that a fair coin divides the instances that only
    one of the two resolves at least as unevenly (Q. McNemar, Psychometrika 12, 1947, in its binomial form)."""
    trials, fewer = only_first + only_second, min(only_first, only_second)
    return min(1.0, 2.0 * sum(comb(trials, k) for k in range(fewer + 1)) / 2.0**trials)


def bootstrap(items: Sequence[_T], of: Callable[[Sequence[_T]], float], draws: int) -> tuple[float, float]:
    """The 95 % interval of a statistic: its percentiles over this many samples, drawn with replacement."""
    rng = Random(0)
    drawn = sorted(of(rng.choices(items, k=len(items))) for _ in range(draws))
    return drawn[int(0.025 * draws)], drawn[int(0.975 * draws) - 1]
