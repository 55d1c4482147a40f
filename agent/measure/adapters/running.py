"""Runs the tests in a scratch fork by an adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.measure import SuiteReport
from agent.measure.adapters import Adapter, Left, Order
from agent.measure.adapters.logs import LOG, LOGS, guessed, verbose
from agent.measure.reading import from_exit_code, from_transcript
from agent.measure.warm.planting import Limits, Plan, plan
from sandboxes import ExecResult, Sandbox

CAPTURE = """
mkfifo "$1.pipe"
{ exec 3>"$1" 4<"$1"; rm "$1"; cat <"$1.pipe" >&3; cat <&4 >"$1"; } &
(rm "$1.pipe"; eval "$2") >"$1.pipe" 2>&1; code=$?; wait; exit $code
"""
"""Output goes to a file through a pipe, which a process cannot rewind; neither has a name while tests run."""
UNKNOWN = "?"
"""Stands for an adapter's name: the command's output decides."""
FILE_BYTES = 50_000_000
FILES = 20_000


def run_adapted(box: Sandbox, adapter: Adapter, command: str, wanted: Sequence[str], limits: Limits) -> SuiteReport:
    """Run these tests, or all when none is named or the adapter cannot select."""
    planned = plan(())
    left, result = _carry_out(box, adapter.order(planned, command, wanted, limits), planned, limits)
    asked = wanted if adapter.selects or result.timed_out else ()
    return from_transcript(adapter.read(left), result, asked, adapter.name)


def run_unknown(box: Sandbox, command: str, limits: Limits) -> SuiteReport:
    """Run an unknown command: its output is read if it is that of a known runner; else the command is one test."""
    planned = plan(())
    left, result = _carry_out(box, Order(verbose(command), captured=True), planned, limits)
    parser = None if result.timed_out else guessed(left.report.decode(errors="replace"), result.exit_code)
    if parser is None:
        return from_exit_code(result)
    adapter = LOGS[f"{LOG}{parser}"]
    return from_transcript(adapter.read(left), result, (), adapter.name)


def _carry_out(box: Sandbox, order: Order, planned: Plan, limits: Limits) -> tuple[Left, ExecResult]:
    """Carry out an order; returns what to parse and the exit status. A killed run leaves nothing: the fork is gone."""
    timeout_s = limits.kill_s
    for path, content in order.files.items():
        box.write(path, content)
    if order.gather:
        box.exec([*_find(order), "-delete"], timeout_s=timeout_s)
    result = box.exec(_argv(box, order, planned), timeout_s=timeout_s)
    if result.timed_out:
        return Left(planned.nonce, result.exit_code), result
    report = _read(box, planned.report)
    left = Left(planned.nonce, result.exit_code, report, _gathered(box, order, timeout_s))
    return left, replace(result, stdout=report, stderr=b"") if order.captured else result


def _argv(box: Sandbox, order: Order, planned: Plan) -> list[str]:
    if not order.captured:
        return ["/bin/sh", "-c", order.script]
    box.exec(["mkdir", "-p", planned.folder], timeout_s=60)
    return ["/bin/sh", "-c", CAPTURE, "sh", planned.report, order.script]


def _read(box: Sandbox, path: str) -> bytes:
    """The file's content; empty if it cannot be read."""
    try:
        return box.read(path, max_bytes=FILE_BYTES)
    except OSError:
        return b""


def _gathered(box: Sandbox, order: Order, timeout_s: float) -> Mapping[str, bytes]:
    if not order.gather:
        return {}
    listed = box.exec([*_find(order), "-print0"], timeout_s=timeout_s).stdout.decode(errors="replace")
    paths = [path.removeprefix("./") for path in listed.split("\0") if path]
    return {path: _read(box, path) for path in paths[:FILES]}


def _find(order: Order) -> list[str]:
    either = [word for pattern in order.gather for word in ("-o", "-path", pattern)][1:]
    return ["find", ".", "-type", "f", "(", *either, ")"]
