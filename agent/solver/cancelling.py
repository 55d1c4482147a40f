"""Steps that are taken at once when a session is cancelled, while the work in progress still runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.2
"""How often the waiting thread checks whether the block has ended, in seconds."""


@contextmanager
def on_cancel(cancel: threading.Event, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, in another thread, if `cancel` is set before the block ends."""
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.is_set():
            if cancel.wait(LOOK_S):
                act()
                return

    watcher = threading.Thread(target=watch, name="ramify-cancel")
    watcher.start()
    try:
        yield
    finally:
        stopped.set()
        watcher.join()
