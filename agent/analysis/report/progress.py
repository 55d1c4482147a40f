"""The progress of a session: a line for each improvement, and a live view below if the terminal can show it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from agent.analysis.report.baseline import goal_line, installed_copies, missing_modules
from agent.analysis.report.live import View
from agent.analysis.report.summary import tally
from agent.budget import Usage
from agent.counting import counted, first_of
from agent.measure.regressions import regressions
from agent.models.prices import REMEDY
from agent.run.events import Added, Asked, Event, Round, Started, Steered
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.node import Node
from agent.task import Task, load_task
from agent.untrusted import escaped

STUCK, STUCK_S = 200, 120.0
"""After this many states and seconds without a better state, a line says how to end the search."""
QUIET_S = 30.0
"""Without a live view, a status line is printed after this many seconds of silence."""


class Progress:
    """Shows the events of a session on stderr, from any thread. A context manager, to clear the live view."""

    def __init__(
        self, console: Console | None = None, *, quiet: bool = False, python: Callable[[Task], str] | None = None
    ) -> None:
        """`python` says which Python runs the tests of a task; it is asked when there is a base state."""
        self._python = python
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
        self.view = View()
        """The live view below the lines."""
        plain = bool(os.environ.keys() & {"CI", "NO_COLOR"}) or self._console.is_dumb_terminal
        self._live: Live | None = None
        if self._console.is_terminal and not (plain or self._console.quiet):
            self._live = Live(self.view, console=self._console, transient=True, redirect_stdout=False)
        self._lock = threading.Lock()
        self._root: Node | None = None
        self._best: Node | None = None
        self._reasons: set[str] = {""}
        self._unpriced: set[str] = set()
        self._printed = self._rose = time.monotonic()
        self._stale = 0
        """States since the best value rose."""
        self._told_stuck = False

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def catch_up(self, directory: Path, limits: Mapping[str, Any]) -> None:
        """Note the journal of earlier sessions, and the limits of this session.

        Raises:
            agent.errors.JournalError: the journal cannot be read.
        """
        with Run.read(directory) as run:
            self._root = run.tree.root if len(run.tree) else None
            self._best = run.tree.best() if len(run.tree) else None
            self.view.catch_up(run.journal.events(), limits, run.elapsed_s)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.view.take(event)
        with self._lock:
            match event:
                case Started() if event.task:
                    self._tell_command(load_task(event.task))
                case Added():
                    self._root = event.node if not event.node.parents else self._root
                    self._added(event.node)
                    if not event.node.parents:
                        self._tell_baseline(event.node)
                    self._explain(event.choice)
                case Asked():
                    self._warn(event.model, event.answer.usage)
                case Steered():
                    order = event.order
                    who = "a person asks" if order.by == "person" else "a rollout is repaired"
                    self.say(f"{who}: {order.act} {order.node} {order.hint.partition(chr(10))[0]}".rstrip())
                case Round():
                    self.say(f"round {event.number} begins at the base state")
            self._stay_in_touch()

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(escape(escaped(line)))
        self._printed = time.monotonic()

    def _added(self, node: Node) -> None:
        if self._best is not None and node.value <= self._best.value:
            self._tell_if_stuck()
            return
        self._stale, self._rose = 0, time.monotonic()
        what = "the repository as it is" if self._best is None else node.label or f"state {node.id}"
        self._best = node
        broken = regressions(self._root.report, node.report) if self._root else ()
        breaks = f", breaks {len(broken)}: {first_of(broken, 1)}" if broken else ""
        self.say(f"{node.value:.3f}  {what} ({tally(node.report, self.view.goals)}{breaks})")

    def _tell_command(self, task: Task) -> None:
        """Print how the tests are run."""
        self.say(f"command  {task.test_command}")
        if self._python and (python := self._python(task)):
            self.say(f"python   {python}")

    def _tell_baseline(self, root: Node) -> None:
        """Print which tests have to pass, and which modules are missing or not the checkout's own."""
        if goals := self.view.goals:
            self.say(goal_line(goals))
        elif failing := len(root.report.failures):
            tests = counted(failing, "test fails", "tests fail")
            self.say(f"{tests} already; with --goal-failing, they have to pass in the end")
        for line in (*installed_copies(root.report), *missing_modules(root.report, self.view.goals)):
            self.say(line)

    def _explain(self, choice: Choice | None) -> None:
        """Print once which algorithm has taken over, and why."""
        if choice is not None and choice.because not in self._reasons:
            self._reasons.add(choice.because)
            self.say(choice.because)

    def _warn(self, model: str, usage: Usage) -> None:
        """Print once for each model that the price of its tokens is unknown."""
        if usage.tokens and usage.unpriced_calls == usage.model_calls and model not in self._unpriced:
            self._unpriced.add(model)
            self.say(f"the price of {model} is unknown: {REMEDY}")

    def _tell_if_stuck(self) -> None:
        """Count a state that is no better. After many such states and a long time, print once how to end the search."""
        self._stale += 1
        if self._told_stuck or self._stale < STUCK or time.monotonic() - self._rose < STUCK_S:
            return
        self._told_stuck = True
        self.say(f"no progress in {self._stale} states; Ctrl-C keeps the best so far, --max-seconds N sets a limit")

    def _stay_in_touch(self) -> None:
        """Without a live view, print a status line after a long silence."""
        if self._live is not None or time.monotonic() - self._printed <= QUIET_S:
            return
        best = 0.0 if self._best is None else self._best.value
        self.say(f"best value {best:.3f}, {self.view.sums()}")
