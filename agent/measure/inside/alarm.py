"""The alarm that ends a test if it takes too long. It is raised inside the test, so that earlier results are not lost.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import ctypes
import math
import platform
import signal
import struct
import sys
from types import FrameType
from typing import Any

# Tests patch these modules; the alarm must not depend on that.
set_timer, pack = signal.setitimer, struct.pack

LIBC = ctypes.CDLL(None, use_errno=True)
CLOCK_MONOTONIC = 1
TIMER_CALLS = {"x86_64": (222, 223), "aarch64": (107, 110)}
"""The numbers of timer_create and timer_settime."""
GRACE_S = 5.0
"""How long a test may continue after its wall-clock time is up."""


_PYTEST: Any = sys.modules.get("pytest")
FAILURE: Any = _PYTEST.fail.Exception if _PYTEST else BaseException
"""The base class of what ends a test: pytest's own, if pytest runs the tests."""


class OutOfTime(FAILURE):  # type: ignore[misc]  # known at run time
    """A test exceeded its time. A BaseException: `except Exception` does not stop it."""

    __module__ = "builtins"  # so that messages do not name this file


class Alarm:
    """Raises OutOfTime in a phase of a test: after `cpu_s` seconds of its own CPU time, whatever else the machine does,
    and after `wall_s` wall-clock seconds. It rings again every second, because a test may swallow it, and finally kills
    the process when the wall-clock time is exceeded. `error`: raised instead of OutOfTime."""

    def __init__(self, cpu_s: float, wall_s: float, error: type[BaseException] = OutOfTime) -> None:
        self.cpu_s, self.wall_s, self.error = cpu_s, wall_s, error
        self.armed = False
        self.rang = False
        self._clocks = [Clock(signal.SIGPROF), Clock(signal.SIGKILL)] if platform.machine() in TIMER_CALLS else []
        signal.signal(signal.SIGPROF, self._ring)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        if self.armed:
            self.rang = True
            raise self.error("ran out of time")

    def arm(self, left_s: float = math.inf, *, cpu: bool = True) -> None:
        """Start the alarm. `left_s`: wall-clock seconds left of the whole run, more than 0. Without `cpu`, only this
        limit counts."""
        self.armed = True
        if cpu:
            set_timer(signal.ITIMER_PROF, self.cpu_s, 1.0)
        wall_s = min(self.wall_s, left_s) if cpu else left_s
        for clock, delay_s in zip(self._clocks, (wall_s, wall_s + GRACE_S)):  # noqa: B905 - Python 3.8
            clock.set(delay_s)

    def disarm(self) -> None:
        self.armed = False
        set_timer(signal.ITIMER_PROF, 0)
        for clock in self._clocks:
            clock.set(0)


class Clock:
    """A kernel timer that sends a signal, then again every second. Python's own timer belongs to the tests, and they
    would notice a waiting thread or process."""

    def __init__(self, number: int) -> None:
        create, self._settime = TIMER_CALLS[platform.machine()]
        event = struct.pack("Pii48x", 0, number, 0)
        timer = ctypes.c_int()
        if LIBC.syscall(create, CLOCK_MONOTONIC, event, ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
        self._timer = timer.value

    def set(self, delay_s: float) -> None:
        """Ring after this delay; 0: never."""
        interval = 1 if delay_s else 0
        LIBC.syscall(self._settime, self._timer, 0, pack("llll", interval, 0, int(delay_s), int(delay_s % 1 * 1e9)), 0)
