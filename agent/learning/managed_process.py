"""Child: a program that works for this one, in a session of its own, and is gone with all that it started when this
one leaves the block that needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

__all__ = ["gone_after", "leaving_by_signals"]

STOP_S = 30
"""Time to end by itself."""


@contextmanager
def leaving_by_signals() -> Iterator[None]:
    """A signal that would end this process at once raises SystemExit in the block; one that is ignored still is."""
    here = threading.current_thread() is threading.main_thread()
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if here and signal.getsignal(each) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def gone_after(process: subprocess.Popen[bytes], *, alone: bool = False) -> Iterator[None]:
    """The process, begun with `start_new_session`, has ended after the block: asked first, all that it started with it
    or it `alone`, then killed with all of them. A second Ctrl-C ends the patience, not the ending."""
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
