"""Curves of resolved instances against budget: what a batch would resolve with less, or if it were repeated.

To answer "is the search worth it?", compare one batch with a large budget and several with a small one.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from math import comb
from pathlib import Path
from statistics import fmean

from agent.errors import UsageError
from benchmarks.batch.batch import Identity, read_identity
from benchmarks.reports.comparison import Unit, resolved, spent
from benchmarks.reports.report import Line, read_report, wilson


@dataclass(frozen=True, slots=True)
class Point:
    """The share of instances that are resolved with a given budget for each instance."""

    budget: float
    rate: float
    """The share of the graded instances, in [0, 1]."""
    low: float
    high: float
    """`low` and `high` are the 95 % score interval of the rate. For several batches it is the interval of their mean
    rate over the instances, and does not reflect how far the repetitions agree."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one solver."""

    name: str
    mode: str
    instances: int
    points: tuple[Point, ...]
    repeated: bool = False
    """Whether each point is for a number of attempts, rather than for one attempt with a limit."""


def read_curves(batches: Sequence[Path], unit: Unit) -> list[Curve]:
    """A curve for each batch. A solver with several batches with the same settings also gets a curve of the instances
    that at least one of k batches resolves, against the cost of k batches.

    Raises:
        UsageError: a folder is not a batch or not graded, the batches have different modes, two of them have the same
            settings and seed, or a cost is unknown.
    """
    identities = [read_identity(batch) for batch in batches]
    if len(modes := {identity.mode for identity in identities}) > 1:
        raise UsageError(f"these batches were run with {' and '.join(sorted(modes))} tests: they cannot be compared")
    _require_other_seeds(batches, identities)
    curves: list[Curve] = []
    repeated: defaultdict[tuple[str, str], list[list[Line]]] = defaultdict(list)
    for batch, identity in zip(batches, identities, strict=True):
        graded = [line for line in read_report(batch) if line.resolved is not None]
        if not graded:
            raise UsageError(f"{batch}: nothing is graded; ramify bench grade {batch} --source {identity.source}")
        curves.append(Curve(f"{batch.name} ({identity.model})", identity.mode, len(graded), _steps(graded, unit)))
        repeated[identity.model, identity.settings].append(graded)
    curves += [_repeated(_solver(*key), runs, unit) for key, runs in repeated.items() if len(runs) > 1]
    return curves


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of `k` attempts succeeded, if they are drawn from `n` attempts of which `c`
    succeeded: 1 - C(n - c, k) / C(n, k), the unbiased estimator.

    Raises:
        ValueError: not 0 <= c <= n or not 1 <= k <= n.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"n={n}, c={c}, k={k}: give 0 <= c <= n and 1 <= k <= n")
    return 1.0 - comb(n - c, k) / comb(n, k)


def as_csv(curves: Sequence[Curve]) -> str:
    """The curves as CSV, with a row for each point."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["curve", "mode", "instances", "budget", "resolved_rate", "low_95", "high_95"])
    for curve in curves:
        for p in curve.points:
            writer.writerow([curve.name, curve.mode, curve.instances, p.budget, p.rate, p.low, p.high])
    return out.getvalue()


def _steps(lines: Sequence[Line], unit: Unit) -> tuple[Point, ...]:
    """A point for each cost at which another instance is resolved, and one at the highest cost."""
    costs = sorted({spent(line, unit) for line in lines if line.resolved} | {max(spent(line, unit) for line in lines)})
    counts = ((cost, sum(resolved(line, unit, cost) for line in lines)) for cost in costs)
    return tuple(Point(cost, count / len(lines), *wilson(count, len(lines))) for cost, count in counts)


def _require_other_seeds(batches: Sequence[Path], identities: Sequence[Identity]) -> None:
    by_seed: dict[tuple[str, str, int], Path] = {}
    for batch, identity in zip(batches, identities, strict=True):
        if identity.seed is None:
            continue
        key = identity.model, identity.settings, identity.seed
        if key in by_seed:
            raise UsageError(
                f"{by_seed[key]} and {batch} are one attempt: {identity.model} with the same settings and seed "
                f"{identity.seed}; name one of them, or run one again with another --seed"
            )
        by_seed[key] = batch


def _solver(model: str, settings: str) -> str:
    return f"{model} (settings {settings})" if settings else model


def _repeated(model: str, runs: Sequence[Sequence[Line]], unit: Unit) -> Curve:
    attempts: defaultdict[str, list[Line]] = defaultdict(list)
    for run in runs:
        for line in run:
            attempts[line.instance_id].append(line)
    complete = [lines for lines in attempts.values() if len(lines) == len(runs)]
    if not complete:
        raise UsageError(f"no instance is graded in all batches of {model}")
    points = tuple(_of_k(complete, len(runs), unit))
    return Curve(f"{model}, best of k batches", runs[0][0].mode, len(complete), points, repeated=True)


def _of_k(instances: Sequence[Sequence[Line]], n: int, unit: Unit) -> Iterator[Point]:
    """A point for each k: the mean rate and cost of k attempts at each instance."""
    mean_cost = fmean(spent(line, unit) for lines in instances for line in lines)
    for k in range(1, n + 1):
        rate = fmean(pass_at_k(n, sum(line.resolved is True for line in lines), k) for lines in instances)
        yield Point(k * mean_cost, rate, *wilson(rate * len(instances), len(instances)))
