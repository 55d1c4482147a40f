"""Budgets: what a run spends is reserved before it is spent and charged afterwards."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from typing import Protocol


class Stop(Enum):
    """Why a search ended. The value is the sentence that people read."""

    SOLVED = "solved: the goal tests pass and nothing broke"
    EXHAUSTED = "nothing left to propose"
    SUBMITTED = "the work was submitted and checked"
    NO_PROGRESS = "no progress: repeated attempts ended without an improvement"
    FINISHED = "all requested rollouts are finished"
    NODES = "the limit of states is reached"
    MEASUREMENTS = "the limit of measurements is reached"
    CALLS = "the limit of model calls is reached"
    TOKENS = "the limit of tokens is reached"
    COST = "the dollar limit is reached"
    TIME = "the time limit is reached"
    BATCH = "a limit of the whole batch is reached"
    INTERRUPTED = "interrupted"
    FAILED = "stopped by an error"


_ENDS_WORK = (Stop.TIME, Stop.CALLS, Stop.TOKENS, Stop.COST)
"""Limits at which work in flight should end, too."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. Usages are added and subtracted field by field."""

    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    """How many of `tokens_in` were read from a prompt cache."""
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    """Calls with an unknown price. They count in `model_calls` but not in `cost_usd`."""
    measurements: int = 0
    """Test runs."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.tokens_in + self.tokens_out


class BudgetSpent(Exception):
    """A reservation does not fit. Carries the `Stop` of the limit."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.value)
        self.stop = stop


class ParentBudget(Protocol):
    """The parent of a budget, which may be in another process. See `Budget` for its methods."""

    @property
    def left_s(self) -> float:
        """Seconds until the limit of seconds."""
        ...

    def stop(self, nodes: int = 0) -> Stop | None:
        """The first limit that forbids new work; None if there is none."""
        ...

    def used_up(self) -> bool:
        """Whether work in flight should end."""
        ...

    def reserve(self, estimate: Usage) -> AbstractContextManager[Callable[[Usage], None]]:
        """Hold an estimate back. Raises BudgetSpent."""
        ...

    def charge(self, usage: Usage, nodes: int = 0) -> None:
        """Count what was spent without a reservation."""
        ...


class Budget:
    """Limits shared by all workers of a run, or by all runs of a batch; None: no limit. Thread-safe.

    `reserve` holds an estimate back until it is charged, so that workers together cannot overshoot. Invariant: the
    limit of calls is never exceeded; the limits of tokens, dollars and measurements are exceeded at most by what the
    calls in flight use beyond their estimates. A run may end below a limit, by the amount that was reserved and not
    used.

    A batch makes one Budget with its own limits and passes it to the Budget of each run as `parent`: what a run
    reserves and spends counts in both, and the limits of both apply; a limit of the parent is reported as `Stop.BATCH`.

        batch = Budget(max_usd=20.0)
        run = Budget(max_usd=3.0, max_nodes=100, parent=batch)

    The spending of earlier sessions is passed to `start` of each budget. A batch counts that of all its runs before it
    resumes any of them.
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
        parent: ParentBudget | None = None,
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
        self._parent = parent
        self._lock = threading.Lock()

    def start(self, *, spent: Usage, nodes: int, elapsed_s: float) -> None:
        """Begin a session with what the journal says was spent before it."""
        with self._lock:
            self._spent, self._nodes, self._elapsed_before = spent, nodes, elapsed_s
            self._began = self._now()

    @property
    def spent(self) -> Usage:
        """What was spent, in all sessions."""
        with self._lock:
            return self._spent

    @property
    def elapsed_s(self) -> float:
        """Seconds of all sessions together."""
        return self._elapsed_before + self._now() - self._began

    @property
    def left_s(self) -> float:
        """Seconds until the limit of seconds; infinite without one."""
        left_s = math.inf if self.max_seconds is None else self.max_seconds - self.elapsed_s
        return min(left_s, self._parent.left_s) if self._parent else left_s

    def count_node(self) -> None:
        """Count a node that was recorded."""
        self.charge(Usage(), 1)

    def stop(self, nodes: int = 0) -> Stop | None:
        """Return the first limit that forbids new work, or that `nodes` more nodes would exceed; None if there is none.
        Reservations count."""
        with self._lock:
            stop = self._at_limit(nodes)
        if stop is None and self._parent and self._parent.stop(nodes):
            return Stop.BATCH
        return stop

    def used_share(self, excluding: Collection[Stop] = ()) -> float:
        """Return the highest spent fraction of any of its own limits except those in `excluding`; 0 without limits."""
        with self._lock:
            spent, nodes = self._spent, self._nodes
        limits = self._limits(spent, nodes)
        return max((reached / limit for stop, limit, reached in limits if limit and stop not in excluding), default=0.0)

    def used_up(self) -> bool:
        """Whether the limit of time, calls, tokens or dollars is reached, so that work in flight should end."""
        limits = self._limits(self.spent, 0)
        if any(limit is not None and reached >= limit for stop, limit, reached in limits if stop in _ENDS_WORK):
            return True
        return self._parent is not None and self._parent.used_up()

    @contextmanager
    def reserve(self, estimate: Usage) -> Iterator[Callable[[Usage], None]]:
        """Reserve `estimate` for the block, or until the yielded function is called with the actual usage.

        A block that ends without that call has used nothing. Only the limits that the estimate is about are checked,
        and the seconds; a model call, even with an estimate of 0, also checks tokens and dollars.

        Raises:
            BudgetSpent: the estimate does not fit.
        """
        with self._lock:
            if (stop := self._refusal(estimate)) is not None:
                raise BudgetSpent(stop)
            self._reserved += estimate
        held = [estimate]

        def settle(used: Usage) -> None:
            with self._lock:
                self._spent += used
                self._reserved -= held.pop() if held else Usage()

        with ExitStack() as ends:
            ends.callback(settle, Usage())
            try:
                charge_parent = ends.enter_context(self._parent.reserve(estimate)) if self._parent else None
            except BudgetSpent as spent:
                raise BudgetSpent(Stop.BATCH) from spent

            def charge(used: Usage) -> None:
                settle(used)
                if charge_parent:
                    charge_parent(used)

            yield charge

    def charge(self, usage: Usage, nodes: int = 0) -> None:
        """Count what was spent without a reservation."""
        with self._lock:
            self._spent += usage
            self._nodes += nodes
        if self._parent:
            self._parent.charge(usage, nodes)

    def _limits(self, usage: Usage, nodes: int) -> tuple[tuple[Stop, float | None, float], ...]:
        """Return each limit with its `Stop` and how much of it is used."""
        return (
            (Stop.TIME, self.max_seconds, self.elapsed_s),
            (Stop.NODES, self.max_nodes, nodes),
            (Stop.MEASUREMENTS, self.max_measurements, usage.measurements),
            (Stop.CALLS, self.max_calls, usage.model_calls),
            (Stop.TOKENS, self.max_tokens, usage.tokens),
            (Stop.COST, self.max_usd, usage.cost_usd),
        )

    def _at_limit(self, nodes: int) -> Stop | None:
        more = max(0, nodes - 1)  # a run may record exactly as many nodes as the limit says
        limits = self._limits(self._spent + self._reserved, self._nodes + more)
        return next((stop for stop, limit, reached in limits if limit is not None and reached >= limit), None)

    def _refusal(self, more: Usage) -> Stop | None:
        """The first limit that `more` would exceed; None if it fits."""
        taken = self._spent + self._reserved
        always = (Stop.TIME, Stop.TOKENS, Stop.COST) if more.model_calls else (Stop.TIME,)
        limits = zip(self._limits(taken, 0), self._limits(taken + more, 0), strict=True)
        for (stop, limit, reached), (_, _, then) in limits:
            if limit is not None and (limit < then > reached or (stop in always and reached >= limit)):
                return stop
        return None
