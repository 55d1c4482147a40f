"""How a batch is going, on stderr: a live table on a terminal, a line for each attempt that ended elsewhere."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agent.events import Added, Event
from benchmarks.batch import Attempt
from benchmarks.instances import Instance, Mode

__all__ = ["BatchProgress"]


@dataclass(slots=True)
class _Running:
    began: float
    nodes: int = 0
    best: float = 0.0


class BatchProgress:
    """Shows a batch from any thread. A context manager, to end the live table."""

    def __init__(self, total: int, mode: Mode) -> None:
        self._total = total
        self._mode = mode
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._counts: Counter[str] = Counter()
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        plain = bool(os.environ.keys() & {"CI", "NO_COLOR"}) or self._console.is_dumb_terminal
        self._live: Live | None = None
        if self._console.is_terminal and not plain:
            self._live = Live(console=self._console, get_renderable=self._table, refresh_per_second=2)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, instance: Instance) -> None:
        """Show the instance as running."""
        with self._lock:
            self._running[instance.id] = _Running(time.monotonic())

    def advanced(self, instance: Instance, event: Event) -> None:
        """Count a node of a running instance."""
        with self._lock:
            if isinstance(event, Added) and (running := self._running.get(instance.id)) is not None:
                running.nodes += 1
                running.best = max(running.best, event.node.value)

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """Print how the attempt ended."""
        with self._lock:
            self._running.pop(instance.id, None)
            self._counts["interrupted" if attempt is None else attempt.state] += 1
            position = f"[{self._counts.total()}/{self._total}]"
            self._console.print(Text(f"{position} {self._mode} {instance.id}: {_sentence(attempt)}"))

    def _table(self) -> Group:
        with self._lock:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for title in ("instance", "nodes", "best", "seconds"):
                table.add_column(title, justify="left" if title == "instance" else "right")
            for name, running in self._running.items():
                seconds = time.monotonic() - running.began
                table.add_row(Text(name), str(running.nodes), f"{running.best:.2f}", f"{seconds:.0f}")
            counts = ", ".join(f"{count} {state}" for state, count in self._counts.items())
            return Group(table, Text(f"{self._mode} tests: {self._counts.total()} of {self._total} ended  {counts}"))


def _sentence(attempt: Attempt | None) -> str:
    if attempt is None:
        return "interrupted, will go on"
    if not attempt.facts:
        return f"{attempt.state}: {attempt.error}"
    facts = attempt.facts
    spent = f"{facts['nodes']} nodes, {facts['seconds']:.0f} s, stop: {facts['stop']}"
    return f"{attempt.state}, {facts['status']} ({spent})" + (f"; {attempt.error}" if attempt.error else "")
