"""Runs tests on versions of some files, each in a child of one process that has already imported pytest.

It is copied into a sandbox and run there as its own program: `python3 inside.py ORDER REPORT`. The order is JSON:
`arguments` for pytest, `timeout_s` for one version, and `versions`, each a mapping of paths to texts. The report has
one line for each version: the outcome of each test, `timeout`, or `broken` with the reason. The files are restored
after each version."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional

import pytest


class Outcomes:
    """Records the outcome of each test: the worst of its stages."""

    def __init__(self) -> None:
        self.tests: Dict[str, str] = {}
        self.broken = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record one stage of a test."""
        if (report.outcome != "passed" or report.when == "call") and self.tests.get(report.nodeid) != "failed":
            self.tests[report.nodeid] = report.outcome

    def pytest_collectreport(self, report: Any) -> None:
        """Record that a file cannot be collected, which breaks the whole run."""
        if report.failed:
            self.broken = str(report.longrepr)[-500:]


def main(order_file: str, report_file: str) -> None:
    """Test every version in turn; each line of the report is written as soon as it is known."""
    with open(order_file, encoding="utf-8") as file:
        order = json.load(file)
    with open(report_file, "w", encoding="utf-8") as report:
        for version in order["versions"]:
            report.write(json.dumps(_tested(version, order["arguments"], order["timeout_s"])) + "\n")
            report.flush()


def _tested(version: Dict[str, str], arguments: List[str], timeout_s: float) -> Dict[str, Any]:
    before = {path: _swapped(path, text) for path, text in version.items()}
    try:
        return _in_a_child(arguments, timeout_s)
    finally:
        for path, text in before.items():
            _swapped(path, text)


def _swapped(path: str, text: str) -> str:
    """Write a file. Returns its previous text."""
    with open(path, encoding="utf-8", newline="") as file:
        old = file.read()
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return old


def _in_a_child(arguments: List[str], timeout_s: float) -> Dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.setsid()
        _report(arguments, writing)
    os.close(writing)
    said = _read(reading, time.monotonic() + timeout_s)
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if said is None:
        return {"timeout": True}
    found: Dict[str, Any] = json.loads(said) if said else {"broken": "the test process ended early"}
    return found


def _report(arguments: List[str], writing: int) -> None:
    """Run the tests and write their outcomes to a pipe. Never returns."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        outcomes = Outcomes()
        status = int(pytest.main([*arguments, "-p", "no:cacheprovider"], plugins=[outcomes]))
        if status not in (0, 1) and not outcomes.broken:
            outcomes.broken = "pytest ended with status {}".format(status)
        with os.fdopen(writing, "w") as pipe:
            json.dump({"broken": outcomes.broken} if outcomes.broken else {"tests": outcomes.tests}, pipe)
    finally:
        os._exit(0)


def _read(reading: int, until: float) -> Optional[bytes]:
    """Read everything that arrives until the other side closes the pipe; None if that takes too long."""
    pieces: List[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0, until - time.monotonic()))
        if not ready:
            return None
        piece = os.read(reading, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())  # as `python -m pytest` does
    main(sys.argv[1], sys.argv[2])
