"""Run tests in a scratch fork with an adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.measure import SuiteReport
from agent.measure.adapters import Adapter, Invocation, RunOutput
from agent.measure.adapters.logs import LOG, LOGS, guessed, verbose
from agent.measure.reading import from_exit_code, from_transcript
from agent.measure.warm.plugins import Limits, RunNames, run_names
from sandboxes import ExecResult, Sandbox

CAPTURE = """
mkfifo "$1.pipe"
{ exec 3>"$1" 4<"$1"; rm "$1"; cat <"$1.pipe" >&3; cat <&4 >"$1"; } &
(rm "$1.pipe"; eval "$2") >"$1.pipe" 2>&1; code=$?; wait; exit $code
"""
"""Output goes to a file through a pipe, which a process cannot rewind; neither has a name while tests run."""
UNKNOWN = "?"
"""In place of an adapter's name: the command's output decides which adapter reads it."""
FILE_BYTES = 50_000_000
FILES = 20_000


def run_adapted(box: Sandbox, adapter: Adapter, command: str, wanted: Sequence[str], limits: Limits) -> SuiteReport:
    """Run these tests, or all if none is named or the adapter cannot select."""
    names = run_names(())
    output, result = _carry_out(box, adapter.invocation(names, command, wanted, limits), names, limits)
    asked = wanted if adapter.selects or result.timed_out else ()
    return from_transcript(adapter.read(output), result, asked, adapter.name)


def run_unknown(box: Sandbox, command: str, limits: Limits) -> SuiteReport:
    """Run an unknown command. If its output is that of a known runner, it is parsed; else the command counts as one
    test."""
    names = run_names(())
    output, result = _carry_out(box, Invocation(verbose(command), captured=True), names, limits)
    parser = None if result.timed_out else guessed(output.report.decode(errors="replace"), result.exit_code)
    if parser is None:
        return from_exit_code(result)
    adapter = LOGS[f"{LOG}{parser}"]
    return from_transcript(adapter.read(output), result, (), adapter.name)


def _carry_out(box: Sandbox, invocation: Invocation, names: RunNames, limits: Limits) -> tuple[RunOutput, ExecResult]:
    """Carry out an invocation; return what to parse and the exit status. A killed run leaves no output."""
    timeout_s = limits.kill_s
    for path, content in invocation.files.items():
        box.write(path, content)
    if invocation.gather:
        box.exec([*_find(invocation), "-delete"], timeout_s=timeout_s)
    result = box.exec(_argv(box, invocation, names), timeout_s=timeout_s)
    if result.timed_out:
        return RunOutput(names.nonce), result
    report = _read(box, names.report)
    output = RunOutput(names.nonce, report, _gathered(box, invocation, timeout_s))
    return output, replace(result, stdout=report, stderr=b"") if invocation.captured else result


def _argv(box: Sandbox, invocation: Invocation, names: RunNames) -> list[str]:
    if not invocation.captured:
        return ["/bin/sh", "-c", invocation.script]
    box.exec(["mkdir", "-p", names.folder], timeout_s=60)
    return ["/bin/sh", "-c", CAPTURE, "sh", names.report, invocation.script]


def _read(box: Sandbox, path: str) -> bytes:
    """The file's content; empty if it cannot be read."""
    try:
        return box.read(path, max_bytes=FILE_BYTES)
    except OSError:
        return b""


def _gathered(box: Sandbox, invocation: Invocation, timeout_s: float) -> Mapping[str, bytes]:
    if not invocation.gather:
        return {}
    listed = box.exec([*_find(invocation), "-print0"], timeout_s=timeout_s).stdout.decode(errors="replace")
    paths = [path.removeprefix("./") for path in listed.split("\0") if path]
    return {path: _read(box, path) for path in paths[:FILES]}


def _find(invocation: Invocation) -> list[str]:
    either = [word for pattern in invocation.gather for word in ("-o", "-path", pattern)][1:]
    return ["find", ".", "-type", "f", "(", *either, ")"]
