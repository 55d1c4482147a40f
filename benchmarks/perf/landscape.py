"""What a landscape is: what an expansion would lead to, what it is worth, and what it costs, without a sandbox.

A landscape is a pure function of its seed: the k-th child of a state is the same for whoever asks and however often.
Every true value is in [0, 1], and an optimum is worth exactly 1. Nothing but the standard library is imported, so that
other libraries' searches can be driven on the same landscapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

__all__ = ["Curve", "Landscape", "Move", "State", "digest", "measured", "rng_of"]

State = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One proposal: where it leads, and what the proposal says of itself."""

    state: State
    """Never the state that it was made in."""
    prior: float = 1.0
    """In [0, 1]: how likely the policy thinks it to be right."""
    cost: float = 1.0
    """Of proposing and measuring it, above 0, in units of budget."""
    file: str = ""
    """What it edits."""


class Landscape(Protocol):
    """States, and the moves between them."""

    @property
    def seed(self) -> int:
        """All that is random follows from it."""
        ...

    @property
    def start(self) -> State:
        """The base state."""
        ...

    @property
    def noise(self) -> float:
        """The standard deviation of a measured value; 0 where a measurement tells the truth."""
        ...

    def move(self, state: State, index: int) -> Move | None:
        """The `index`-th proposal for a state, from 0; None when it has no more."""
        ...

    def value(self, state: State) -> float:
        """The true value, in [0, 1]; 1 is the optimum."""
        ...

    def tests(self, state: State) -> Mapping[str, bool]:
        """Which tests pass, where the landscape has tests."""
        ...

    def fused(self, ours: State, theirs: State) -> State | None:
        """Both states' edits in one state; None when they conflict."""
        ...


class Curve:
    """What a run had found by the time that it had spent so much."""

    def __init__(self) -> None:
        self.spent = 0.0
        """Units of budget, of work that has ended."""
        self._points: list[tuple[float, float, float]] = []

    def spend(self, cost: float, found: float, answer: float) -> None:
        """Some work has ended. `found` is the best true value of a state that was reached, `answer` that of the state
        that the run would answer with: it looks best."""
        self.spent += cost
        self._points.append((self.spent, found, answer))

    def at(self, budget: float) -> tuple[float, float]:
        """What was found, and what would be answered, when `budget` was spent."""
        return max((point for point in self._points if point[0] <= budget + 1e-9), default=(0.0, 0.0, 0.0))[1:]


def digest(state: State) -> str:
    """The identity of a state."""
    return ",".join(map(str, state))


def measured(landscape: Landscape, state: State, time: int = 0) -> float:
    """What the `time`-th measurement of a state says, in [0, 1]; another one says something else where there is noise.

    A measurement with noise is never 1: it cannot show that a state is an optimum.
    """
    if not landscape.noise:
        return landscape.value(state)
    draw = rng_of(landscape.seed, state, time, "measured").gauss(landscape.value(state), landscape.noise)
    return min(0.999, max(0.0, draw))


def rng_of(*key: object) -> Random:
    """A generator of its own for every key, the same each time."""
    return Random(repr(key))
