"""The cost of a search with a model apart from the model: how many calls per second eight workers make to a server that
answers at once, and where their time goes.

    python -m benchmarks.perf.machinery --repositories tiny

A branch has eight turns: view a file, make some files, run a command, and run the tests at the end. The workers' stacks
are sampled many times a second; a sample counts for the innermost part of our code on the stack, including what that
waits for. The server is a separate process on the same machine. The first branches, in which sandboxes start and
libraries are loaded, do not count.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Self

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.models.openai import OpenAIModel
from agent.policy.chat.policy import ChatPolicy
from agent.run.events import Added, Asked, Event
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from benchmarks.perf.answering import TURNS, server
from benchmarks.perf.bench import Bench, chosen, say
from benchmarks.perf.latency import unsolvable
from benchmarks.perf.repositories import Repository
from benchmarks.perf.script import main
from benchmarks.perf.table import Row

WORKERS = 8
N, WARM_UP = 5, 1
"""Branches of each worker that count, and those before."""
INTERVAL_S = 0.02
PLACES = {
    "agent/measure/": "tests",
    "agent/models/": "client",
    "agent/engine/model_calls.py": "record",
    "agent/run/message_store.py": "record",
    "agent/run/journal.py": "record",
    "agent/files.py": "record",
    "agent/run/run.py": "record",
    "agent/policy/": "conversation",
    "sandboxes/": "sandbox",
    "agent/": "engine",
}
"""The names of parts of our code by path; the first match counts. Measuring takes precedence over what it uses."""


def options(parser: ArgumentParser) -> None:
    """This script has no options of its own."""


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """The rate, a row for each part, and the size of the journal."""
    repository, count = chosen(given.repositories)[0], given.n or N
    say(f"{repository.name}: {WORKERS} workers, {count} branches each, {len(TURNS)} turns a branch")
    with (
        server(repository.edited) as url,
        TemporaryDirectory(prefix="machinery-") as folder,
        Run.open(Path(folder, "run")) as run,
        Watch(WORKERS * WARM_UP) as watch,
    ):
        _search(bench, repository, url, run, WORKERS * (WARM_UP + count), watch)
        size, calls = run.journal.path.stat().st_size, run.usage.model_calls
    yield from watch.findings()
    yield Row("the journal", f"{size / 1024:.0f} KiB", "", calls, f"{size / calls / 1024:.1f} KiB a call")


def _search(bench: Bench, repository: Repository, url: str, run: Run, branches: int, watch: Watch) -> None:
    os.environ.setdefault("OPENAI_API_KEY", "none")
    model = OpenAIModel("openai/instant", base_url=url)
    parts = Components(
        bench.provider(repository),
        ChatPolicy(model),
        BestOfN(n=branches, depth=1),
        PassingTests(),
        Budget(max_nodes=branches + 1),
        baseline_runs=1,
        workers=WORKERS,
    )
    task = unsolvable(repository, bench.path(repository), run.journal.directory.parent / "repository")
    try:
        result = solve(task, parts, run, on_event=watch.hear)
    finally:
        model.close()
    if result.nodes <= branches:
        raise RuntimeError(f"{result.nodes} states of {branches + 1}: {result.error or result.stop.value}")


class Watch:
    """Counts calls and samples the workers, from the end of the first branches to the end of the block."""

    def __init__(self, warm_up: int) -> None:
        self.moments: Counter[str] = Counter()
        self.calls = 0
        self.seconds = self.cpu_s = 0.0
        self._before = warm_up + 1
        self._lock = threading.Lock()
        self._begun, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.seconds, self.cpu_s = self.seconds + time.monotonic(), self.cpu_s + time.process_time()
        self._over.set()
        self._begun.set()
        self._thread.join()

    def hear(self, event: Event) -> None:
        """Count an event of the run; for the base state and the first branches, only that they exist."""
        with self._lock:
            if self._begun.is_set():
                self.calls += isinstance(event, Asked)
            elif isinstance(event, Added):
                self._before -= 1
                if not self._before:
                    self.seconds, self.cpu_s = -time.monotonic(), -time.process_time()
                    self._begun.set()

    def findings(self) -> Iterator[Row]:
        """The rate, and a row for each part."""
        rate, cpu = f"{self.calls / self.seconds:.1f} a second", f"{1000 * self.cpu_s / self.calls:.1f} ms"
        yield Row(
            f"calls of a model that answers at once, {WORKERS} workers", rate, "", self.calls, f"{cpu} of CPU a call"
        )
        for name, count in self.moments.most_common():
            share = count / self.moments.total()
            each = f"{1000 * WORKERS * self.seconds * share / self.calls:.1f} ms a call"
            yield Row(f"of the workers' time: {name}", f"{100 * share:.1f} %", "", self.calls, each)

    def _look(self) -> None:
        self._begun.wait()
        while not self._over.wait(INTERVAL_S):
            workers = {thread.ident for thread in threading.enumerate() if thread.name.startswith("ramify_")}
            for ident, frame in sys._current_frames().items():  # noqa: SLF001  # there is no public name
                if ident in workers:
                    self.moments[part(frame)] += 1


def part(frame: FrameType | None) -> str:
    """The name of the innermost part of our code in a stack; "idle" if a worker has nothing to begin."""
    found = ""
    while frame is not None:
        place = _place(frame.f_code.co_filename, frame.f_code.co_qualname)
        if place == "tests":
            return place
        found, frame = found or place, frame.f_back
    return found or "idle"


@cache
def _place(file: str, function: str) -> str:
    if function == "Engine._next":
        return "idle"
    return next((name for path, name in PLACES.items() if path in file), "")


if __name__ == "__main__":
    main(__doc__, options, rows)
