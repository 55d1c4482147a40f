"""The coordinator: what the workers of a batch share, in one process beside the batch's folder.

Law: each instance is one attempt's at a time. A later attempt ends what an earlier one held; the earlier one can begin
nothing more and deliver nothing, and what it still pays for is counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agent.budget import Budget, BudgetSpent, Stop, Usage
from agent.errors import RamifyError
from benchmarks.batch.status import Standing
from benchmarks.data.unpacking import unpack

__all__ = ["UNFINISHED", "Ask", "Coordinator", "Superseded", "WorkerLease"]

UNFINISHED = ".unfinished"
"""In a batch's folder: `ID/N/`, unfinished runs that were begun again elsewhere."""
_ARRIVING = ".arriving"


class Ask(Protocol):
    """The coordinator, from another machine."""

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method of the coordinator and wait for the answer. Raises what the method raises."""
        ...


WAITING = Standing("waiting for a machine")
"""The status of an instance that Ray has and no machine has begun."""


class Superseded(RamifyError):
    """Another attempt at the instance has begun: the machine of this one was considered lost."""


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """What a worker gets when it begins."""

    attempt: int
    """The number of the attempt at the instance, from 1, higher than any before."""
    environment: Mapping[str, str] = field(repr=False)
    """Variables with the secrets that it needs."""
    left_s: float
    """Seconds until the limit of the whole batch; may be infinite."""


class Coordinator:
    """Limits, secrets and arriving runs of a batch. Not thread-safe: it does one thing at a time."""

    def __init__(self, out: Path, limits: Mapping[str, float | None]) -> None:
        self._out = out
        self._budget = Budget(**limits)  # type: ignore[arg-type]  # each limit is of its own kind
        self._environment: Mapping[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._held: dict[int, tuple[str, ExitStack, Callable[[Usage], None]]] = {}
        self._tickets = 0
        self._standings: dict[str, Standing] = {}
        self._machines: dict[str, str] = {}

    def open(self, spent: Usage, elapsed_s: float, environment: Mapping[str, str]) -> bool:
        """Begin a session; returns whether this machine has the batch's folder."""
        self._budget.start(spent=spent, nodes=0, elapsed_s=elapsed_s)
        self._environment = environment
        return (self._out / "batch.json").is_file()

    def begin(self, name: str) -> WorkerLease:
        """Begin an attempt at an instance, in place of any earlier one."""
        self.abandon(name)
        self._parcel(name).unlink(missing_ok=True)
        self._standings[name] = Standing()
        return WorkerLease(self._attempts[name], self._environment, self._budget.left_s)

    def abandon(self, name: str) -> None:
        """Give up the attempt at an instance, if there is one, and release its reservations."""
        self._attempts[name] = self._attempts.get(name, 0) + 1
        for ticket in [ticket for ticket, (holder, *_) in self._held.items() if holder == name]:
            self.release(ticket)

    def moved(self, name: str, machine: str) -> None:
        """Note the machine that works on an instance."""
        self._machines[name] = machine

    def machine(self, name: str) -> str:
        """The machine that worked on an instance last; empty: none."""
        return self._machines.get(name, "")

    def stands(self, name: str, attempt: int, standing: Standing) -> None:
        """Note the status of an attempt, unless a later one has begun."""
        if self._is_current(name, attempt):
            self._standings[name] = standing

    def standing(self, name: str) -> Standing:
        """The status of the current attempt at an instance."""
        return self._standings.get(name, WAITING)

    def receive(self, name: str, attempt: int, piece: bytes) -> None:
        """Take the next piece of an attempt's run.

        Raises:
            Superseded: a later attempt has begun.
        """
        self._require(name, attempt)
        parcel = self._parcel(name)
        parcel.parent.mkdir(parents=True, exist_ok=True)
        with parcel.open("ab") as file:
            file.write(piece)

    def unpack(self, name: str, attempt: int, ended: bool) -> None:
        """All of the run is here: give it its place in the batch, or among the unfinished ones. A run that is in that
        place came from a machine that was lost before it could say so: it makes room, and counts.

        Raises:
            Superseded: a later attempt has begun.
        """
        self._require(name, attempt)
        parcel, draft = self._parcel(name), self._out / _ARRIVING / name
        shutil.rmtree(draft, ignore_errors=True)
        unpack(parcel, draft)
        place = self._out / name
        if ended and place.exists():
            place.rename(self._next_unfinished(name))
        draft.rename(place if ended else self._next_unfinished(name))
        parcel.unlink()

    def stop(self, nodes: int) -> Stop | None:
        """As `Budget.stop`."""
        return self._budget.stop(nodes)

    def used_up(self) -> bool:
        """As `Budget.used_up`."""
        return self._budget.used_up()

    def reserve(self, name: str, attempt: int, estimate: Usage) -> int | Stop:
        """The ticket of a reservation, or why there is none: the limit that it would exceed, or a later attempt."""
        if not self._is_current(name, attempt):
            return Stop.INTERRUPTED
        held = ExitStack()
        try:
            settle = held.enter_context(self._budget.reserve(estimate))
        except BudgetSpent as spent:
            return spent.stop
        self._tickets += 1
        self._held[self._tickets] = name, held, settle
        return self._tickets

    def settle(self, usage: Usage, nodes: int, ticket: int | None = None) -> None:
        """Count what was spent, from a ticket if there is one. Spent money counts also for a ticket that is no longer
        valid."""
        if ticket in self._held:
            self._held[ticket][2](usage)
        else:
            self._budget.settle(usage, nodes)

    def release(self, ticket: int) -> None:
        """Release what is left of a ticket."""
        _, held, _ = self._held.pop(ticket, ("", ExitStack(), None))
        held.close()

    def spent(self) -> Usage:
        """Spent by all workers and earlier sessions."""
        return self._budget.spent

    def _require(self, name: str, attempt: int) -> None:
        if not self._is_current(name, attempt):
            raise Superseded(f"{name}: attempt {attempt} is no longer the current one")

    def _is_current(self, name: str, attempt: int) -> bool:
        return self._attempts.get(name, 0) == attempt

    def _parcel(self, name: str) -> Path:
        return self._out / _ARRIVING / f"{name}.tgz"

    def _next_unfinished(self, name: str) -> Path:
        folder = self._out / UNFINISHED / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder / str(1 + sum(1 for _ in folder.glob("*")))
