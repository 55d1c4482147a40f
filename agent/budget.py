"""Usage and Budget: what a run may spend, reserved before it is spent and settled after."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum

__all__ = ["Budget", "BudgetSpent", "Stop", "Usage"]


class Stop(Enum):
    """Why a search ended. The value is the sentence that people read."""

    SOLVED = "solved: the goal tests pass and nothing broke"
    EXHAUSTED = "nothing left to propose"
    NODES = "the limit of nodes is reached"
    MEASUREMENTS = "the limit of measurements is reached"
    CALLS = "the limit of model calls is reached"
    TOKENS = "the limit of tokens is reached"
    COST = "the limit of dollars is reached"
    TIME = "the limit of seconds is reached"
    INTERRUPTED = "interrupted"
    FAILED = "stopped by an error"


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. Adding two is adding every field."""

    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    """Of `tokens_in`, those read from a prefix cache."""
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    """Calls whose price is unknown: they are in `model_calls` and not in `cost_usd`."""
    measurements: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.tokens_in + self.tokens_out


class BudgetSpent(Exception):
    """A reservation does not fit. Carries the `Stop` that it would have broken."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.value)
        self.stop = stop


class Budget:
    """Limits shared by all workers of a run. None is no limit.

    `reserve` holds an estimate back until it is settled, so that workers together cannot overshoot. Seconds that
    earlier sittings of the run took are counted (`elapsed_before_s`).
    """

    def __init__(
        self,
        *,
        max_nodes: int | None = None,
        max_measurements: int | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_usd: float | None = None,
        max_seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_nodes = max_nodes
        self.max_measurements = max_measurements
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.max_usd = max_usd
        self.max_seconds = max_seconds
        self._now = now
        self._began = now()
        self._elapsed_before = 0.0
        self._spent = Usage()
        self._reserved = Usage()
        self._nodes = 0
        self._lock = threading.Lock()

    def start(self, *, spent: Usage, nodes: int, elapsed_s: float) -> None:
        """Begin a sitting: what the journal says was spent before it."""
        with self._lock:
            self._spent, self._nodes, self._elapsed_before = spent, nodes, elapsed_s
            self._began = self._now()

    @property
    def elapsed_s(self) -> float:
        """Seconds of all sittings together."""
        return self._elapsed_before + self._now() - self._began

    def count_node(self) -> None:
        """A node was recorded."""
        with self._lock:
            self._nodes += 1

    def stop(self, estimate: Usage | None = None, nodes: int = 0) -> Stop | None:
        """The first limit that `estimate` and so many more nodes would break, None when all hold."""
        with self._lock:
            return self._broken(estimate or Usage(), nodes)

    def used_up(self) -> bool:
        """Whether time, calls, tokens or dollars have come to their limit, so that work in flight should end."""
        with self._lock:
            spent = self._spent
            limits = (
                (self.max_seconds, self.elapsed_s),
                (self.max_calls, spent.model_calls),
                (self.max_tokens, spent.tokens),
                (self.max_usd, spent.cost_usd),
            )
            return any(limit is not None and reached >= limit for limit, reached in limits)

    @contextmanager
    def reserve(self, estimate: Usage) -> Iterator[Callable[[Usage], None]]:
        """Hold `estimate` back for the block; call the yielded function with what was really used.

        A block that ends without settling has used nothing.

        Raises:
            BudgetSpent: the estimate does not fit.
        """
        with self._lock:
            if (stop := self._broken(estimate, 0)) is not None:
                raise BudgetSpent(stop)
            self._reserved += estimate
        try:
            yield self.settle
        finally:
            with self._lock:
                self._reserved -= estimate

    def settle(self, usage: Usage) -> None:
        """Count what was spent."""
        with self._lock:
            self._spent += usage

    def _broken(self, more: Usage, nodes: int) -> Stop | None:
        total = self._spent + self._reserved + more
        limits = (
            (self.max_seconds, self.elapsed_s, Stop.TIME, True),
            (self.max_nodes, self._nodes + nodes, Stop.NODES, nodes == 0),
            (self.max_measurements, total.measurements, Stop.MEASUREMENTS, more.measurements == 0),
            (self.max_calls, total.model_calls, Stop.CALLS, more.model_calls == 0),
            (self.max_tokens, total.tokens, Stop.TOKENS, more.tokens == 0),
            (self.max_usd, total.cost_usd, Stop.COST, more.cost_usd == 0),
        )
        for limit, reached, stop, at_limit_is_over in limits:
            if limit is not None and (reached > limit or (at_limit_is_over and reached >= limit)):
                return stop
        return None
