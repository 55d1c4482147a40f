"""Conjugate distributions of an unknown mean: update with observed values, read the mean, draw."""

from __future__ import annotations

from math import sqrt
from random import Random
from typing import NamedTuple

LEAST = 1e-300
"""The number that replaces a chi-squared draw of 0."""


class Seen(NamedTuple):
    """The sufficient statistics of observed values for either distribution: their number, sum and sum of squares."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, other: Seen) -> Seen:
        """The statistics of both sets of values together."""
        return Seen(self.n + other.n, self.total + other.total, self.squares + other.squares)


class Beta(NamedTuple):
    """The mean of coin tosses; a value in [0, 1] counts as a fraction of a success."""

    successes: float
    """The number of successes; above 0, like that of the failures."""
    failures: float

    @property
    def mean(self) -> float:
        """The expected mean, in (0, 1)."""
        return self.successes / (self.successes + self.failures)

    def updated(self, seen: Seen) -> Beta:
        """The posterior."""
        return Beta(self.successes + seen.total, self.failures + seen.n - seen.total)

    def draw(self, rng: Random) -> float:
        """A mean."""
        return rng.betavariate(*self)


class Normal(NamedTuple):
    """The mean of normally distributed values of unknown mean and variance (normal-inverse-chi-squared)."""

    mean: float
    kappa: float
    """The number of values that the mean counts as, above 0."""
    nu: float
    """The number of values that the variance counts as, above 0."""
    tau2: float
    """The variance, above 0."""

    def updated(self, seen: Seen) -> Normal:
        """The posterior."""
        if not seen.n:
            return self
        average = seen.total / seen.n
        kappa, nu = self.kappa + seen.n, self.nu + seen.n
        spread = max(0.0, seen.squares - seen.total * average)
        surprise = seen.n * self.kappa / kappa * (average - self.mean) ** 2
        mean = (self.kappa * self.mean + seen.total) / kappa
        return Normal(mean, kappa, nu, (self.nu * self.tau2 + spread + surprise) / nu)

    def draw(self, rng: Random) -> float:
        """A mean."""
        variance = self.nu * self.tau2 / max(LEAST, rng.gammavariate(self.nu / 2, 2))
        return rng.gauss(self.mean, sqrt(variance / self.kappa))
