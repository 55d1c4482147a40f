"""What the programs of the flywheel share: how they resume and how they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import NoReturn

from agent.errors import RamifyError, UsageError
from agent.files import write_atomically
from agent.learning.managed_process import STOP_S

TO_END_S = STOP_S + 5
"""Seconds that a worker may take to end what it has started."""


def agreed(path: Path, args: Namespace, names: Sequence[str]) -> None:
    """Record in a file with which of these options its folder is made, or compare them with an earlier record.

    Raises:
        UsageError: the folder was made with other options.
    """
    chosen = json.loads(json.dumps({name: getattr(args, name) for name in names}, default=str))
    if path.exists():
        before = json.loads(path.read_bytes())
        other = [
            f"{name} {before.get(name)}, not {value}" for name, value in chosen.items() if before.get(name) != value
        ]
        if other:
            raise UsageError(f"{path.parent} was made with {'; '.join(other)}: use the same, or name a new --out")
    write_atomically(path, (json.dumps(chosen, indent=1) + "\n").encode())


def ended(main: Callable[[], int]) -> NoReturn:
    """Exit with the code that `main` returns, or with its error message."""
    try:
        sys.exit(main())
    except RamifyError as error:
        sys.exit(f"error: {error}")


def end_with_parent() -> None:
    """For workers of a pool: end this process when its parent ends, even by a kill. What it has started, such as a
    training, ends with it."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(TO_END_S)
        os._exit(1)  # a pool keeps its worker after an error of the work

    Thread(target=watch, daemon=True).start()
