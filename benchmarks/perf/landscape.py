"""The interface of landscapes, which simulate expansions without a sandbox: their results, values and costs.

A landscape is a pure function of its seed: the k-th child of a state is always the same. Every true value is in [0, 1],
and an optimum has exactly 1. Only the standard library is imported, so that the searches of other libraries can run on
the same landscapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One proposal: the state that it leads to, and its properties."""

    state: State
    """The state that it leads to, which is never the state that it was made in."""
    prior: float = 1.0
    """How likely the policy thinks the proposal is right, in [0, 1]."""
    cost: float = 1.0
    """The cost of proposing and measuring the proposal, above 0, in units of budget."""
    file: str = ""
    """The file that the proposal edits."""


class Landscape(Protocol):
    """States and the moves between them."""

    @property
    def seed(self) -> int:
        """The seed that determines everything random."""
        ...

    @property
    def start(self) -> State:
        """The base state."""
        ...

    @property
    def noise(self) -> float:
        """The standard deviation of a measured value; 0 if measurements are exact."""
        ...

    def move(self, state: State, index: int) -> Move | None:
        """The `index`-th proposal for a state, from 0; None if there are no more."""
        ...

    def value(self, state: State) -> float:
        """The true value, in [0, 1]; 1 is the optimum."""
        ...

    def tests(self, state: State) -> Mapping[str, bool]:
        """Which tests pass; none if the landscape has no tests."""
        return {}

    def fused(self, ours: State, theirs: State) -> State | None:
        """The state with the edits of both; None if they conflict, which is always so if states never meet."""
        return None


class Curve:
    """The answer that a run would have given after each amount of budget."""

    def __init__(self) -> None:
        self.spent = 0.0
        """The units of budget spent on work that has ended."""
        self._points: list[tuple[float, float]] = []

    def spend(self, cost: float, answer: float) -> None:
        """Record that some work has ended. `answer` is the true value of the state that looks best, which would be the
        run's answer."""
        self.spent += cost
        self._points.append((self.spent, answer))

    def at(self, budget: float) -> float:
        """The answer's true value when `budget` was spent."""
        return next(answer for spent, answer in reversed(self._points) if spent <= budget + 1e-9)


def digest(state: State) -> str:
    """The identity of a state."""
    return ",".join(map(str, state))


def measured(landscape: Landscape, state: State, time: int = 0) -> float:
    """The result of the `time`-th measurement of a state, in [0, 1]. With noise, measurements differ.

    A measurement with noise is never 1, as it cannot show that a state is an optimum.
    """
    if not landscape.noise:
        return landscape.value(state)
    draw = rng_of(landscape.seed, state, time, "measured").gauss(landscape.value(state), landscape.noise)
    return min(0.999, max(0.0, draw))


def rng_of(*key: object) -> Random:
    """A random generator for a key, the same each time."""
    return Random(repr(key))
