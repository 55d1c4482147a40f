"""Child processes in their own sessions, which are ended together with everything they started when a block ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

STOP_S = 30
"""The seconds that a process has to end after it is asked to."""


@contextmanager
def leaving_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit in the block instead of killing this process. A signal that is already
    ignored or handled stays that way."""
    in_main = threading.current_thread() is threading.main_thread()
    signals = [name for name in (signal.SIGTERM, signal.SIGHUP) if in_main and signal.getsignal(name) == signal.SIG_DFL]
    for name in signals:
        signal.signal(name, _leave)
    try:
        yield
    finally:
        for name in signals:
            signal.signal(name, signal.SIG_DFL)


@contextmanager
def gone_after(process: subprocess.Popen[bytes], *, alone: bool = False) -> Iterator[None]:
    """When the block ends, end a process that was started with `start_new_session`. It is asked to terminate, together
    with everything it started unless `alone`; then all of them are killed. A second Ctrl-C skips the waiting, not the
    killing."""
    try:
        yield
    finally:
        try:
            _ask(process, alone)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
        finally:
            _kill(process)
            process.wait()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _ask(process: subprocess.Popen[bytes], alone: bool) -> None:
    if alone:
        process.terminate()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
