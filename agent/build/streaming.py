"""iter_solve(): a search as an iterator of its events, for callers that prefer a loop to a callback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from agent.build.composition import start
from agent.run.events import Event
from agent.settings import Settings
from agent.solver.result import Result
from agent.task import Task


def iter_solve(
    task: Task, settings: Settings, directory: Path, *, cancel: threading.Event | None = None
) -> Iterator[Event | Result]:
    """Solve a task in a run directory, as `solve` does. Yields every event once it is recorded, and the `Result` last.

    The search runs in its own thread and does not wait for the caller. If the iterator is closed early, `cancel` is
    set, and the search ends like any cancelled one: the best patch so far is in the run directory, and the run can be
    resumed.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: as `solve`.
    """
    items: SimpleQueue[Event | Result | BaseException] = SimpleQueue()
    stop = cancel or threading.Event()

    def search() -> None:
        try:
            items.put(start(task, settings, directory, cancel=stop, on_event=items.put))
        except BaseException as error:  # raised again where the iterator is read
            items.put(error)

    thread = threading.Thread(target=search, name="ramify-solve")
    thread.start()
    try:
        while not isinstance(item := items.get(), Result | BaseException):
            yield item
    except BaseException:  # the iterator was closed
        stop.set()
        raise
    finally:
        thread.join()
    if isinstance(item, BaseException):
        raise item
    yield item
