"""Shows the progress of a batch on stderr: a live table on a terminal, and a line for each attempt that ended."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from agent.analysis.report.summary import cost
from agent.budget import Usage
from agent.counting import counted
from agent.run.events import Event
from benchmarks.batch.batch import Attempt
from benchmarks.batch.status import InstanceStatus
from benchmarks.data.instances import Instance, Mode

_BAR = 40
"""The width of the bar, in columns."""
_WITHOUT = {
    "done": "no patch",
    "limit": "no patch",
    "infra": "failed, to be repeated",
    "broken": "broken, left out until the set is corrected",
    "config": "cannot be begun",
}
"""The states of an attempt that ended without a result."""


@dataclass(slots=True)
class _Running:
    began: float
    spinner: Spinner = field(default_factory=lambda: Spinner("line"))
    status: InstanceStatus = field(default_factory=InstanceStatus)


class BatchProgress:
    """An observer that shows a batch; a context manager, which starts and stops the live table. Thread-safe."""

    def __init__(self, total: int, mode: Mode, console: Console | None = None) -> None:
        self._total = total
        self._mode = mode
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._counts: Counter[str] = Counter()
        self._spent = Usage()
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        plain = bool(os.environ.keys() & {"CI", "NO_COLOR"}) or self._console.is_dumb_terminal
        self._live: Live | None = None
        if self._console.is_terminal and not plain:
            self._live = Live(console=self._console, get_renderable=self.table, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, instance: Instance) -> None:
        """Show that the instance is running; without the table, print a line."""
        with self._lock:
            self._running[instance.id] = _Running(time.monotonic())
        if self._live is None:
            self._console.print(Text(f"{self._mode} {instance.id}: started"))

    def advanced(self, instance: Instance, news: Event | InstanceStatus) -> None:
        """Update the status of a running instance from an event or from the status that another machine reported."""
        with self._lock:
            if (running := self._running.get(instance.id)) is not None:
                running.status = news if isinstance(news, InstanceStatus) else running.status.after(news)

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """Print how the attempt ended, without holding our lock: rich holds its own lock while it draws the table, and
        drawing takes ours. Printing takes rich's lock too, so holding ours could deadlock."""
        with self._lock:
            running = self._running.pop(instance.id, None)
            self._spent += Usage() if running is None else running.status.usage
            self._counts[_outcome(attempt)] += 1
            position = f"[{self._counts.total()}/{self._total}]"
        self._console.print(Text(f"{position} {self._mode} {instance.id}: {_sentence(attempt)}"))

    def table(self) -> Group:
        """The running instances, and below them a bar, the counts, what this session has spent, and the time left."""
        with self._lock:
            rows = Table(box=None, padding=(0, 2, 0, 0))
            for title in ("", "instance", "doing", "states", "best", "seconds"):
                rows.add_column(
                    title, justify="right" if title in ("states", "best", "seconds") else "left", no_wrap=True
                )
            for name, running in self._running.items():
                seconds = time.monotonic() - running.began
                status = running.status
                numbers = (str(status.nodes), f"{status.best:.2f}", f"{seconds:.0f}")
                rows.add_row(running.spinner, Text(name), Text(status.doing), *numbers)
            bar = Table.grid(padding=(0, 2, 0, 0))
            bar.add_row(ProgressBar(self._total, self._counts.total(), width=_BAR), Text(self._summary()))
            return Group(rows, bar)

    def _summary(self) -> str:
        ended = self._counts.total()
        counts = ", ".join(f"{count} {state}" for state, count in self._counts.most_common())
        spent = sum((running.status.usage for running in self._running.values()), self._spent)
        left = (time.monotonic() - self._began) / ended * (self._total - ended) if ended else 0
        summary = f"{self._mode} tests: {ended} of {self._total} ended" + (f": {counts}" if counts else "")
        return summary + cost(spent) + (f", about {left / 60:.0f} min left" if left else "")


def _outcome(attempt: Attempt | None) -> str:
    """The solver's status if it finished, else the state of the attempt."""
    if attempt is None:
        return "interrupted"
    status = attempt.facts.get("status")
    return str(status) if attempt.facts.get("resolved", status == "solved") else attempt.state


def _sentence(attempt: Attempt | None) -> str:
    if attempt is None:
        return "interrupted; the same command continues it"
    if not attempt.facts:
        return f"{_WITHOUT[attempt.state]}: {attempt.error}"
    facts = attempt.facts
    spent = f"{counted(facts['nodes'], 'state')}, {facts['seconds']:.0f} s, stop: {facts['stop']}"
    return f"{attempt.state}, {facts['status']} ({spent})" + (f"; {attempt.error}" if attempt.error else "")
