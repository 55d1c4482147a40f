"""A queue of orders for a search that another process runs: a file in the run's directory, one order per line.

Invariants: the engine records each order exactly once, even if a process is killed at any moment; a torn line is not an
order.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from agent.errors import RunInUse, UsageError
from agent.files import append, cut_torn_line, whole_lines
from agent.run.commands import Order, check
from agent.run.events import Steered
from agent.run.journal import decode, encode
from agent.run.paths import journal_of
from agent.run.run import Run

log = logging.getLogger(__name__)

INBOX = "steering.jsonl"


def steer(directory: Path, order: Order) -> Literal["recorded", "queued"]:
    """Give an order to a run. `recorded`: the run is stopped, and its next session carries the order out. `queued`:
    another process holds the run and carries the order out before its next selection; if it ends before that, the next
    session does.

    Raises:
        agent.errors.UsageError: the directory holds no run, or the order cannot be carried out.
        agent.errors.JournalError: the run cannot be read.
    """
    journal_of(directory)
    try:
        with Run.open(directory) as run:
            for event in new_orders(run):
                run.record(event)
            _check(order, run)
            run.record(Steered(order, run.steering.inbox_bytes))
            return "recorded"
    except RunInUse:
        with Run.read(directory) as run:
            _check(order, run)
        put(directory, order)
        return "queued"


def put(directory: Path, order: Order) -> None:
    """Queue an order for the process that holds the run. Several processes may do so at the same time."""
    with (directory / INBOX).open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        cut_torn_line(file)
        append(file, encode(Steered(order)))


def new_orders(run: Run) -> Iterator[Steered]:
    """The queued orders that the run has not recorded, oldest first."""
    try:
        for line, end in whole_lines(run.journal.directory / INBOX, run.steering.inbox_bytes):
            try:
                event = decode(line)
            except ValueError:
                event = None
            if isinstance(event, Steered) and 0 <= event.order.node < len(run.tree):
                yield replace(event, inbox_bytes=end)
            else:
                log.warning("ignoring a line in %s that is not a valid order: %r", INBOX, line[:200])
    except FileNotFoundError:
        return


def _check(order: Order, run: Run) -> None:
    directory = run.journal.directory
    if order.act != "prune" and run.finished:
        raise UsageError(f"{directory} is solved: there is no search to steer")
    if order.act != "prune" and run.started is not None and run.started.settings.get("delegate"):
        raise UsageError(f"{directory} only merges parts; steer the search of one, a run in {directory}/parts/PART/")
    check(order, run.tree, run.steering)
