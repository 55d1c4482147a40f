"""A search as it goes, for a terminal: the tree around its best path, the edits there, the workers and the budget."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from agent.analysis.report.edits import as_diff
from agent.analysis.report.summary import cost, tally
from agent.budget import Usage
from agent.run.events import Added, Asked, Ended, Event, Failed, Merged, Round, Spent, Started, Summarised, Voted
from agent.run.tree.node import Node, NodeId
from agent.untrusted import escaped, one_line

__all__ = ["View", "next_step"]

STEPS = 6
"""States of the best path that are shown, besides the base."""
EDITS = 8
"""Lines of the best edits that are shown."""
BAR = 24
"""Columns of a bar."""

_BEGUN = "proposing an edit and testing it"


def next_step(event: Event) -> str:
    """What a worker does once it has recorded that."""
    match event:
        case Started():
            return "measuring the base state"
        case Asked():
            return "doing what the model says"
        case Spent():
            return "looking at what the tests said"
        case Summarised() | Voted():
            return "choosing among candidates"
        case Round():
            return f"beginning wave {event.number}"
        case Ended():
            return "ending"
        case _:
            return _BEGUN


class View:
    """What is drawn anew a few times a second. Told of events from any thread; a worker is the thread that tells."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._nodes: dict[NodeId, Node] = {}
        self._children: Counter[NodeId] = Counter()
        self._misses = 0
        self._usage = Usage()
        self._limits: Mapping[str, Any] = {}
        self._workers: dict[str, tuple[str, float]] = {}

    def take(self, event: Event) -> None:
        """Take note of an event, and so of what its worker does next."""
        with self._lock:
            self._at_work(next_step(event))
            match event:
                case Started():
                    self._limits = event.settings.get("budget", {})
                case Added():
                    self._nodes[event.node.id] = event.node
                    self._children.update(event.node.parents[:1])
                case Failed() | Merged():
                    self._misses += 1
                case Spent():
                    self._usage += event.usage
                case Asked():
                    self._usage += event.answer.usage

    def catch_up(self, events: Iterable[Event], limits: Mapping[str, Any], elapsed_s: float) -> None:
        """Take note of what earlier sessions recorded and took, and of limits that are given anew."""
        for event in events:
            self.take(event)
        with self._lock:
            self._limits = {**self._limits, **limits}
            self._began -= elapsed_s
            self._at_work("going on with the run")

    def _at_work(self, doing: str) -> None:
        """The main thread works alone: before the workers begin and after they have ended, or where there are none."""
        thread, alone = threading.current_thread(), threading.main_thread()
        gone = set(self._workers) - {thread.name} if thread is alone else {alone.name}
        for name in gone:
            self._workers.pop(name, None)
        self._workers[thread.name] = (doing, time.monotonic())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The view as it is now."""
        with self._lock:
            parts: list[RenderableType] = [*self._tree(), *self._edits(), self._work(), self._budget()]
        yield Group(*parts)

    def sums(self) -> str:
        """How far the search is, in a line."""
        said = f"{len(self._nodes)} states, {self._misses} dead ends, {self._usage.measurements} test runs"
        return said + cost(self._usage)

    def _path(self) -> list[Node]:
        """From the base state to the most valuable one, the earliest of equals."""
        best: Node | None = max(self._nodes.values(), key=lambda node: (node.value, -node.id), default=None)
        path: list[Node] = []
        while best is not None:
            path.append(best)
            best = self._nodes.get(best.parents[0]) if best.parents else None
        return path[::-1]

    def _tree(self) -> Iterator[Drawing]:
        """The best path, with how many others begin at each of its states; its middle is left out where it is long."""
        path = self._path()
        if not path:
            return
        drawing = branch = Drawing(self._line(path[0], on_path=len(path) > 1))
        if len(path) > STEPS + 1:
            branch = branch.add(Text(f"... {len(path) - 1 - STEPS} states"))
        for node in path[1:][-STEPS:]:
            branch = branch.add(self._line(node, on_path=node is not path[-1]))
        yield drawing

    def _line(self, node: Node, *, on_path: bool) -> Text:
        label = node.label or ("the repository as it is" if not node.parents else f"state {node.id}")
        others = self._children[node.id] - on_path
        tried = f"  [{others} other{'s' * (others > 1)} from here]" if others else ""
        return Text.assemble(
            (f"{node.value:.3f}", "bold"), f"  {one_line(label)} ({tally(node.report)})", (tried, "dim"), no_wrap=True
        )

    def _edits(self) -> Iterator[Text]:
        """The edits on the best path, the latest last."""
        lines = [line for node in self._path() for line in as_diff(node.steps).splitlines() if line[:1] in "+-"]
        for line in lines[-EDITS:]:
            yield Text(escaped(line.expandtabs(4)), style="green" if line[0] == "+" else "red", no_wrap=True)

    def _work(self) -> Table:
        """What each worker does, and for how many seconds."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for number, (doing, since) in enumerate(self._workers.values(), 1):
            table.add_row(Text(f"worker {number}", "dim"), Text(doing), f"{time.monotonic() - since:.0f} s")
        return table

    def _budget(self) -> Table:
        """A bar for each limit, and below them what has no limit."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for name, spent in self._spent().items():
            if limit := self._limits.get(f"max_{name}"):
                figure = f"{spent:.2f} of {limit:.2f}" if name == "usd" else f"{spent:.0f} of {limit:.0f}"
                table.add_row(Text(name, "dim"), ProgressBar(limit, min(spent, limit), width=BAR), figure)
        table.add_row("", "", Text(self.sums()))
        return table

    def _spent(self) -> dict[str, float]:
        """In this session and those before it, by the names of the limits."""
        usage = self._usage
        return {
            "nodes": len(self._nodes),
            "measurements": usage.measurements,
            "calls": usage.model_calls,
            "tokens": usage.tokens,
            "usd": usage.cost_usd,
            "seconds": time.monotonic() - self._began,
        }
