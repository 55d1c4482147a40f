"""iter_solve(): a search as an iterator of its events, for callers that would rather loop than be called back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

from agent.build.composition import start
from agent.run.events import Event
from agent.settings import Settings
from agent.solver.solve import Result
from agent.task import Task

__all__ = ["iter_solve"]


def iter_solve(
    task: Task, settings: Settings, directory: Path, *, cancel: threading.Event | None = None
) -> Iterator[Event | Result]:
    """Solve a task in a run directory, as `solve` does: every event once it is recorded, and last the `Result`.

    The search runs in a thread of its own and does not wait for its reader. When the iterator is closed before its end,
    `cancel` is set, and the search ends as on any cancellation: the best patch so far is in the run directory, and the
    run can be resumed.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: as `solve`.
    """
    told: SimpleQueue[Event | Result | BaseException] = SimpleQueue()
    stop = cancel or threading.Event()

    def search() -> None:
        try:
            told.put(start(task, settings, directory, cancel=stop, on_event=told.put))
        except BaseException as error:  # it is raised where the iterator is read
            told.put(error)

    thread = threading.Thread(target=search, name="ramify-solve")
    thread.start()
    try:
        while not isinstance(item := told.get(), Result | BaseException):
            yield item
    except BaseException:  # the reader has left
        stop.set()
        raise
    finally:
        thread.join()
    if isinstance(item, BaseException):
        raise item
    yield item
