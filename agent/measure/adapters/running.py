"""One run of the tests in a scratch fork, by an adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.measure import SuiteReport
from agent.measure.adapters import Adapter, Left, Order
from agent.measure.planting import Limits, Plan, plan
from agent.measure.reading import from_told
from sandboxes import Sandbox

__all__ = ["run_adapted"]

CAPTURE = """
mkfifo "$1.pipe"
{ exec 3>"$1" 4<"$1"; rm "$1"; cat <"$1.pipe" >&3; cat <&4 >"$1"; } &
(rm "$1.pipe"; eval "$2") >"$1.pipe" 2>&1; code=$?; wait; exit $code
"""
"""What is printed goes through a pipe, in which a process cannot go back, to a file; while tests run neither has a
name."""
FILE_BYTES = 50_000_000
FILES = 20_000


def run_adapted(box: Sandbox, adapter: Adapter, command: str, wanted: Sequence[str], limits: Limits) -> SuiteReport:
    """How these tests end, all of them when none is named or the adapter cannot select."""
    planned = plan(())
    timeout_s = limits.kill_s
    order = adapter.order(planned, command, wanted, limits)
    for path, content in order.files.items():
        box.write(path, content)
    if order.gather:
        box.exec([*_find(order), "-delete"], timeout_s=timeout_s)
    result = box.exec(_argv(box, order, planned), timeout_s=timeout_s)
    if result.timed_out:  # the fork is gone
        return from_told(adapter.read(Left(planned.nonce, result.exit_code)), result, wanted, adapter.name)
    report = _read(box, planned.report)
    left = Left(planned.nonce, result.exit_code, report, _gathered(box, order, timeout_s))
    if order.captured:
        result = replace(result, stdout=report, stderr=b"")
    return from_told(adapter.read(left), result, wanted if adapter.selects else (), adapter.name)


def _argv(box: Sandbox, order: Order, planned: Plan) -> list[str]:
    if not order.captured:
        return ["/bin/sh", "-c", order.script]
    box.exec(["mkdir", "-p", planned.folder], timeout_s=60)
    return ["/bin/sh", "-c", CAPTURE, "sh", planned.report, order.script]


def _read(box: Sandbox, path: str) -> bytes:
    """The file's content; nothing when it is not there or cannot be read."""
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
