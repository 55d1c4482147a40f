"""The account of a run: what is reported for each test, and whether the run may continue. Stdlib only, Python 3.8 and
later.

Invariant: a test that does not run because a limit was reached is reported as such, with the reason.
PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Collection
from typing import Any

from .alarm import Alarm, OutOfTime
from .channel import Channel

FAILURES = ("error", "failed", "timeout", "late")
SHORTEST_S = 0.1
"""Seconds for a test that starts just before the run's time is up."""

# Tests patch these functions (to freeze clocks); the report must not depend on that.
clock, getpid = time.perf_counter, os.getpid


class Attempt:
    """The state of the running test."""

    def __init__(self, test: str) -> None:
        self.test = test
        self.outcome = ""
        self.message = ""
        self.unexpected = False
        self.began = clock()

    def learn(self, outcome: str, message: str = "") -> None:
        """Record an outcome. A failure stays; otherwise the last one counts."""
        if self.outcome not in FAILURES:
            self.outcome, self.message = outcome, message


class Account:
    """Reports the tests of a run and keeps its limits. `request`: see `agent.measure.warm.plugins.run_request`. `error`
    is raised in a test that takes too long."""

    def __init__(self, request: dict[str, Any], channel: Channel, error: type[BaseException] = OutOfTime) -> None:
        self.say = channel.say
        self.ends_at, self.late_s, self.armed_at = clock() + request["run_s"], request["late_s"], 0.0
        self.alarm = Alarm(request["cpu_s"], request["wall_s"], error)
        self.process = getpid()
        """The process that owns the alarm."""
        self.timeouts_left = request["timeouts"]
        self.must_pass = frozenset(request["must_pass"])
        self.regressions_left = request["regressions"]
        self.reported: set[str] = set()
        """The tests that ended, were left out, or could not run for lack of time."""
        self.ended: set[str] = set()
        self.left_out: set[str] = set()

    @property
    def finished(self) -> bool:
        """Whether no further test may start."""
        return self.time_is_up or self.regressions_left <= 0 or self.timeouts_left <= 0

    @property
    def time_is_up(self) -> bool:
        """Whether the time of the run is up."""
        return bool(clock() >= self.ends_at)

    @property
    def interrupted(self) -> bool:
        """Whether the guarded code was stopped to leave time for other tests, not because it exceeded its own limit."""
        return self.alarm.rang and (self.time_is_up or bool(clock() - self.armed_at >= self.late_s))

    def arm(self, *, cpu: bool = True) -> None:
        """Start the alarm: the code that runs now has the time of one test, but no more than the run has left. Without
        `cpu`, only the time left of the run counts. A copy of the process gets its own alarm."""
        if getpid() != self.process:
            self.alarm, self.process = Alarm(self.alarm.cpu_s, self.alarm.wall_s, self.alarm.error), getpid()
        self.alarm.rang = False
        self.armed_at = clock()
        self.alarm.arm(max(min(self.ends_at - self.armed_at, self.late_s), SHORTEST_S), cpu=cpu)

    def begin(self, test: str) -> None:
        """Report that a test starts."""
        self.say("start", id=test)

    def end(
        self,
        test: str,
        outcome: str,
        message: str = "",
        seconds: float = 0.0,
        title: str = "",
        unexpected: bool = False,
    ) -> None:
        """Report how a test ended. `title`: the first line of its documentation."""
        self.reported.add(test)
        self.ended.add(test)
        self.timeouts_left -= outcome == "timeout"
        self.regressions_left -= outcome != "passed" and test in self.must_pass
        facts = {"id": test, "outcome": outcome, "seconds": round(seconds, 6), "message": message, "title": title}
        self.say("test", unexpected=unexpected and outcome == "passed", **facts)

    def interrupt(self, test: str, title: str = "") -> None:
        """Report that the run had no time for a test."""
        self.reported.add(test)
        self.say("late", id=test, title=title)

    def leave_out(self, test: str, title: str = "") -> None:
        """Report that a test is left out because the run is over."""
        if self.regressions_left <= 0:
            self.reported.add(test)
            self.left_out.add(test)
            self.say("left", id=test)
        elif self.time_is_up:
            self.interrupt(test, title)
        else:
            self.end(test, "skipped", "not run: too many tests before it ran out of time", title=title)

    def close(self, status: int, **facts: object) -> None:
        """Report that the runner finished. `facts`: further facts, or `collected` if that is not the number of reported
        tests."""
        numbers = {"collected": len(self.reported), "tests": len(self.ended), "left_out": len(self.left_out)}
        self.say("end", exit=status, **{**numbers, **facts})


def open_channel(request: dict[str, Any]) -> Channel:
    """Open the report's channel and remove all traces of Ramify's files. Sets `request["root"]` to the workspace's
    folder."""
    folder = request["folder"]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "root")) as file:
        request["root"] = os.path.realpath(file.read().rstrip("\n"))
    shutil.rmtree(folder, ignore_errors=True)
    clean_environment(folder, ())
    for name in [name for name in sys.modules if name.startswith(request["package"] + ".")]:
        if name != "__main__":
            del sys.modules[name]
    channel = Channel()
    os.makedirs(os.path.dirname(request["report"]), exist_ok=True)
    channel.open(request["report"], request["nonce"])
    channel.say("open")
    return channel


def clean_environment(folder: str, plugins: Collection[str]) -> None:
    """Undo what made Python and pytest find Ramify's programs, so that tests and their child processes do not see
    them."""
    if "PYTHONPATH" in os.environ:
        rest = [entry for entry in os.environ["PYTHONPATH"].split(os.pathsep) if entry != folder]
        _set("PYTHONPATH", os.pathsep.join(rest))
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    _set("PYTEST_PLUGINS", ",".join(p for p in os.environ.get("PYTEST_PLUGINS", "").split(",") if p not in plugins))
    options = os.environ.get("PYTEST_ADDOPTS", "")
    for name in plugins:
        options = options.replace("-p " + name, "")
    _set("PYTEST_ADDOPTS", options.strip())


def _set(variable: str, value: str) -> None:
    if value:
        os.environ[variable] = value
    else:
        os.environ.pop(variable, None)
