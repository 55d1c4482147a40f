"""The live view of a search in a terminal: the best path, the edits on it, the workers and the budget."""

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
from agent.counting import counted
from agent.evaluate.goal_tests import goals_of
from agent.run.events import Added, Asked, Ended, Event, Failed, Merged, Round, Spent, Started, Summarised, Voted
from agent.run.tree.node import Node, NodeId
from agent.untrusted import escaped, one_line

STEPS = 6
"""How many states of the best path are shown, besides the root."""
EDITS = 8
"""How many lines of the edits on it are shown."""
BAR = 24
"""The width of a bar, in columns."""

WORDS = {"nodes": "states", "measurements": "test runs", "usd": "dollars"}
"""The words for limits whose settings have other names."""
OF_MODELS = ("calls", "tokens", "usd")
"""Limits that have no bar before a model is called."""
_BEGUN = "proposing an edit and testing it"


def next_step(event: Event) -> str:
    """What a worker does after it has recorded this event."""
    match event:
        case Started():
            return "measuring the base state"
        case Asked():
            return "carrying out what the model asked for"
        case Spent():
            return "evaluating the test results"
        case Summarised() | Voted():
            return "choosing among candidates"
        case Round():
            return f"beginning round {event.number}"
        case Ended():
            return "ending"
        case _:
            return _BEGUN


class View:
    """The view, which is redrawn a few times a second. Events may come from any thread; the thread that reports an
    event counts as the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._nodes: dict[NodeId, Node] = {}
        self._children: Counter[NodeId] = Counter()
        self._misses = 0
        self._usage = Usage()
        self._limits: Mapping[str, Any] = {}
        self._workers: dict[str, tuple[str, float]] = {}
        self._task: dict[str, Any] = {}
        self.goals: tuple[str, ...] = ()
        """The tests that have to pass; empty: not known."""

    def take(self, event: Event) -> None:
        """Note an event, and what its worker does next."""
        with self._lock:
            self._at_work(next_step(event))
            match event:
                case Started():
                    self._limits = event.settings.get("budget", {})
                    self._task = event.task
                case Added():
                    if not event.node.parents:
                        self.goals = goals_of(self._task, event.node.report)
                    self._nodes[event.node.id] = event.node
                    self._children.update(event.node.parents[:1])
                case Failed() | Merged():
                    self._misses += 1
                case Spent():
                    self._usage += event.usage
                case Asked():
                    self._usage += event.answer.usage

    def catch_up(self, events: Iterable[Event], limits: Mapping[str, Any], elapsed_s: float) -> None:
        """Note the events and the time of earlier sessions, and the limits of this one."""
        for event in events:
            self.take(event)
        with self._lock:
            self._limits = {**self._limits, **limits}
            self._began -= elapsed_s
            self._at_work("resuming the run")

    def _at_work(self, doing: str) -> None:
        """Note what this thread does. The main thread works only while there are no workers: before they begin and
        after they have ended."""
        thread, main = threading.current_thread(), threading.main_thread()
        idle = set(self._workers) - {thread.name} if thread is main else {main.name}
        for name in idle:
            self._workers.pop(name, None)
        self._workers[thread.name] = (doing, time.monotonic())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The view as it is now."""
        with self._lock:
            parts: list[RenderableType] = [*self._tree(), *self._edits(), self._work(), self._budget()]
        yield Group(*parts)

    def sums(self) -> str:
        """The progress of the search in one line."""
        counts = ((len(self._nodes), "state"), (self._misses, "dead end"), (self._usage.measurements, "test run"))
        return ", ".join(counted(*count) for count in counts) + cost(self._usage)

    def _path(self) -> list[Node]:
        """The path from the root to the state of highest value, the earliest of several."""
        best: Node | None = max(self._nodes.values(), key=lambda node: (node.value, -node.id), default=None)
        path: list[Node] = []
        while best is not None:
            path.append(best)
            best = self._nodes.get(best.parents[0]) if best.parents else None
        return path[::-1]

    def _tree(self) -> Iterator[Drawing]:
        """The best path, with the number of other branches at each state. The middle of a long path is left out."""
        path = self._path()
        if not path:
            return
        drawing = branch = Drawing(self._line(path[0], on_path=len(path) > 1))
        if len(path) > STEPS + 1:
            branch = branch.add(Text(f"... {counted(len(path) - 1 - STEPS, 'state')}"))
        for node in path[1:][-STEPS:]:
            branch = branch.add(self._line(node, on_path=node is not path[-1]))
        yield drawing

    def _line(self, node: Node, *, on_path: bool) -> Text:
        label = node.label or ("the repository as it is" if not node.parents else f"state {node.id}")
        others = self._children[node.id] - on_path
        tried = f"  [{others} other{'s' * (others > 1)} from here]" if others else ""
        return Text.assemble(
            (f"{node.value:.3f}", "bold"),
            f"  {one_line(label)} ({tally(node.report, self.goals)})",
            (tried, "dim"),
            no_wrap=True,
        )

    def _edits(self) -> Iterator[Text]:
        """The edits on the best path, the latest last."""
        lines = [line for node in self._path() for line in as_diff(node.steps).splitlines() if line[:1] in "+-"]
        for line in lines[-EDITS:]:
            yield Text(escaped(line.expandtabs(4)), style="green" if line[0] == "+" else "red", no_wrap=True)

    def _work(self) -> Table:
        """What each worker does, and since how many seconds."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for number, (doing, since) in enumerate(self._workers.values(), 1):
            table.add_row(Text(f"worker {number}", "dim"), Text(doing), f"{time.monotonic() - since:.0f} s")
        return table

    def _budget(self) -> Table:
        """A bar for each limit, and below them the sums."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for name, spent in self._spent().items():
            limit = self._limits.get(f"max_{name}")
            if limit and (self._usage.model_calls or name not in OF_MODELS):
                figure = f"{spent:.2f} of {limit:.2f}" if name == "usd" else f"{spent:.0f} of {limit:.0f}"
                word = Text(WORDS.get(name, name), "dim")
                table.add_row(word, ProgressBar(limit, min(spent, limit), width=BAR), figure)
        table.add_row("", "", Text(self.sums()))
        return table

    def _spent(self) -> dict[str, float]:
        """The usage of all sessions, by the names of the limits."""
        usage = self._usage
        return {
            "nodes": len(self._nodes),
            "measurements": usage.measurements,
            "calls": usage.model_calls,
            "tokens": usage.tokens,
            "usd": usage.cost_usd,
            "seconds": time.monotonic() - self._began,
        }
