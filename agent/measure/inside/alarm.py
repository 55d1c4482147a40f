"""The alarm that ends a test which takes too long, raised inside the test so that what it did so far is not lost.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import select
import signal
from types import FrameType

import pytest

# Tests patch these modules; the alarm must not depend on what they leave there.
set_timer, write_bytes = signal.setitimer, os.write


class OutOfTime(pytest.fail.Exception):  # type: ignore[misc, name-defined]  # an attribute of a function
    """A test used more time than it was given. A BaseException: `except Exception` does not stop it."""

    __module__ = "builtins"  # messages show no name of this file


class Alarm:
    """Raises OutOfTime into a phase of a test: after `cpu_s` seconds of its own CPU time, whatever else the machine
    does, and after `wall_s` seconds on the clock, which a watching process of its own counts."""

    def __init__(self, cpu_s: float, wall_s: float) -> None:
        self.cpu_s = cpu_s
        self.armed = False
        self.rang = False
        self._strings = watch(wall_s)
        signal.signal(signal.SIGPROF, self._ring)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if self.armed:
            self.rang = True
            raise OutOfTime("ran out of time", pytrace=True)

    def arm(self) -> None:
        self.armed = True
        # Rings again every second: a test may swallow the first one.
        set_timer(signal.ITIMER_PROF, self.cpu_s, 1.0)
        write_bytes(self._strings, b"+")

    def disarm(self) -> None:
        self.armed = False
        set_timer(signal.ITIMER_PROF, 0)
        write_bytes(self._strings, b"-")


def watch(wall_s: float) -> int:
    """Start a process that signals this one when `+` is not followed by `-` within `wall_s`, and kills it when that
    does not help. A thread would do too, but tests count threads and fork. Returns the descriptor to write to."""
    target = os.getpid()
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.close(sending)
            try:
                _keep_watch(receiving, target, wall_s)
            finally:
                os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(receiving)
    return sending


def _keep_watch(receiving: int, target: int, wall_s: float) -> None:
    patience = [wall_s, 1.0, 1.0, 1.0, 1.0, 1.0]
    rung = 0
    running = False
    while True:
        ready, _, _ = select.select([receiving], [], [], patience[rung] if running else None)
        if ready:
            said = os.read(receiving, 4096)
            if not said:
                return
            running, rung = said.endswith(b"+"), 0
        elif rung + 1 < len(patience):
            os.kill(target, signal.SIGPROF)
            rung += 1
        else:
            os.kill(target, signal.SIGKILL)
            return
