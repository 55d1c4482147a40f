"""The coordinator: one process on the machine of the batch's folder that holds what the workers share.

Invariant: an instance belongs to one attempt at a time. A later attempt releases the reservations of an earlier one.
The earlier one can then neither reserve nor deliver anything, but what it still spends is counted.
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
from benchmarks.batch.status import InstanceStatus
from benchmarks.data.unpacking import unpack

UNFINISHED = ".unfinished"
"""Below this folder of a batch, `ID/N/` holds the runs that did not finish and were restarted."""
_ARRIVING = ".arriving"


class Ask(Protocol):
    """Calls the coordinator, which may be on another machine."""

    def __call__(self, method: str, *arguments: Any) -> Any:
        """Call a method of the coordinator and wait for the answer. Raises what the method raises."""
        ...


WAITING = InstanceStatus("waiting for a machine")
"""The status of an instance that was submitted to Ray and has not started."""


class Superseded(RamifyError):
    """A later attempt at the instance has started, because this attempt's machine was considered lost."""


@dataclass(frozen=True, slots=True)
class WorkerLease:
    """What a worker receives when it starts an instance."""

    attempt: int
    """The number of the attempt at the instance, from 1; a later attempt has a higher number."""
    environment: Mapping[str, str] = field(repr=False)
    """Environment variables with the secrets that the worker needs."""
    left_s: float
    """Seconds until the time limit of the whole batch; may be infinite."""


class Coordinator:
    """Keeps the limits and secrets of a batch and receives its runs. Not thread-safe: Ray calls it once at a time."""

    def __init__(self, out: Path, limits: Mapping[str, float | None]) -> None:
        self._out = out
        self._budget = Budget(**limits)  # type: ignore[arg-type]  # each limit is of its own kind
        self._environment: Mapping[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._reserved: dict[int, tuple[str, ExitStack, Callable[[Usage], None]]] = {}
        self._last_reservation = 0
        self._statuses: dict[str, InstanceStatus] = {}
        self._machines: dict[str, str] = {}

    def open(self, spent: Usage, elapsed_s: float, environment: Mapping[str, str]) -> bool:
        """Begin a session. Returns whether this machine has the batch's folder."""
        self._budget.start(spent=spent, nodes=0, elapsed_s=elapsed_s)
        self._environment = environment
        return (self._out / "batch.json").is_file()

    def begin(self, name: str) -> WorkerLease:
        """Start an attempt at an instance, which supersedes any earlier one."""
        self.abandon(name)
        self._archive(name).unlink(missing_ok=True)
        self._statuses[name] = InstanceStatus()
        return WorkerLease(self._attempts[name], self._environment, self._budget.left_s)

    def abandon(self, name: str) -> None:
        """Give up the current attempt at an instance, if any, and release its reservations."""
        self._attempts[name] = self._attempts.get(name, 0) + 1
        for reservation in [number for number, (holder, *_) in self._reserved.items() if holder == name]:
            self.release(reservation)

    def moved(self, name: str, machine: str) -> None:
        """Note which machine works on an instance now."""
        self._machines[name] = machine

    def machine(self, name: str) -> str:
        """The machine that last worked on an instance; empty before the first."""
        return self._machines.get(name, "")

    def report_status(self, name: str, attempt: int, status: InstanceStatus) -> None:
        """Note the status of an attempt, unless a later one has started."""
        if self._is_current(name, attempt):
            self._statuses[name] = status

    def status(self, name: str) -> InstanceStatus:
        """The status of the current attempt at an instance."""
        return self._statuses.get(name, WAITING)

    def receive(self, name: str, attempt: int, piece: bytes) -> None:
        """Append the next piece of an attempt's run.

        Raises:
            Superseded: a later attempt has begun.
        """
        self._require(name, attempt)
        archive = self._archive(name)
        archive.parent.mkdir(parents=True, exist_ok=True)
        with archive.open("ab") as file:
            file.write(piece)

    def unpack(self, name: str, attempt: int, ended: bool) -> None:
        """Move a run that has arrived completely to its folder in the batch, or to the unfinished runs if it did not
        end. If the folder already holds a run, that one's machine was lost before it could report the end: it becomes
        an unfinished run, and what it spent still counts.

        Raises:
            Superseded: a later attempt has begun.
        """
        self._require(name, attempt)
        archive, draft = self._archive(name), self._out / _ARRIVING / name
        shutil.rmtree(draft, ignore_errors=True)
        unpack(archive, draft)
        place = self._out / name
        if ended and place.exists():
            place.rename(self._next_unfinished(name))
        draft.rename(place if ended else self._next_unfinished(name))
        archive.unlink()

    def stop(self, nodes: int) -> Stop | None:
        """As `Budget.stop`."""
        return self._budget.stop(nodes)

    def used_up(self) -> bool:
        """As `Budget.used_up`."""
        return self._budget.used_up()

    def reserve(self, name: str, attempt: int, estimate: Usage) -> int | Stop:
        """Reserve an estimate. Returns the number of the reservation, or why it was refused: the limit that it would
        exceed, or `Stop.INTERRUPTED` if a later attempt has started."""
        if not self._is_current(name, attempt):
            return Stop.INTERRUPTED
        held = ExitStack()
        try:
            charge = held.enter_context(self._budget.reserve(estimate))
        except BudgetSpent as spent:
            return spent.stop
        self._last_reservation += 1
        self._reserved[self._last_reservation] = name, held, charge
        return self._last_reservation

    def charge(self, usage: Usage, nodes: int, reservation: int | None = None) -> None:
        """Count what was spent, against its reservation if it has one. A usage whose reservation was released is
        counted as well, since the money is spent."""
        if reservation in self._reserved:
            self._reserved[reservation][2](usage)
        else:
            self._budget.charge(usage, nodes)

    def release(self, reservation: int) -> None:
        """Release what is left of a reservation."""
        _, held, _ = self._reserved.pop(reservation, ("", ExitStack(), None))
        held.close()

    def spent(self) -> Usage:
        """What all workers and earlier sessions have spent."""
        return self._budget.spent

    def _require(self, name: str, attempt: int) -> None:
        if not self._is_current(name, attempt):
            raise Superseded(f"{name}: attempt {attempt} is no longer the current one")

    def _is_current(self, name: str, attempt: int) -> bool:
        return self._attempts.get(name, 0) == attempt

    def _archive(self, name: str) -> Path:
        return self._out / _ARRIVING / f"{name}.tgz"

    def _next_unfinished(self, name: str) -> Path:
        folder = self._out / UNFINISHED / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder / str(1 + sum(1 for _ in folder.glob("*")))
