"""Grades with an eval script: applies the patch to the image's repository, runs the script, and reads its log.

Invariant: the steps are those of the official harness in its container (5.0.2, `harness/run_evaluation.py`), but in
Ramify's own sandbox, without a network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from agent.errors import UsageError
from agent.measure import SuiteReport
from agent.measure.diffs import sections
from agent.measure.logs import ALIASES, PARSERS, parse
from benchmarks.data import harness_assets
from benchmarks.data.clones import GitRefused
from benchmarks.data.harness_logs import END, EXIT_CODE, LOG, START, read_log
from benchmarks.data.instances import Hidden, Instance, Reader
from benchmarks.grading.verdicts import Finding
from sandboxes import ExecResult, Provider, Sandbox, Snapshot

LOG_BYTES = 32 << 20
"""The limit for a log. A sandbox for eval scripts should let a command print as much."""
SCRIPT = "/eval.sh"
PATCH = "/tmp/patch.diff"  # noqa: S108  # inside the sandbox, where nobody else is
TIMEOUT_S = 1800
GIT_TIMEOUT_S = 300
HEADER = ("#!/bin/bash", "set -uxo pipefail")
WAYS = (
    ("git", "apply", "--verbose"),
    ("git", "apply", "--verbose", "--3way"),
    ("git", "apply", "--verbose", "--reject"),
    ("patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"),
)
"""The ways to apply a patch, in order, each from a clean tree."""
_BINARY = re.compile(rb"^(?:Binary files .* differ|GIT binary patch)$", re.MULTILINE)
OFFLINE = {"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""There is no network, so pip should fail at once."""


def run_script(instance: Instance, patch: bytes, provider: Provider) -> Finding:
    """Apply a patch, which may be empty, run the instance's eval script, and read its log.

    Raises:
        GitRefused: the patch does not apply.
        InstanceBroken: a file that the tests need cannot be fetched.
        UsageError: there is no log parser for the instance.
        sandboxes.SandboxError: the script cannot be run.
    """
    name = instance.hidden.log_parser
    if not name:
        raise UsageError(
            f"there is no parser for the test log of {instance.id}; grade it with its set's own harness "
            "(--harness swebench, if that is SWE-bench's); for SWE-bench Pro, put the folder run_scripts of its "
            "repository beside the file of rows"
        )
    if name not in {*PARSERS, *ALIASES}:
        raise UsageError(f"the log parser {name!r} of {instance.id} is unknown; --harness swebench may know it")
    base = provider.create(instance.hidden.workspace or instance.task.workspace)
    try:
        with provider.at(base) as box:
            _apply(box, _text_of(patch) if instance.hidden.text_only else patch, instance.hidden.patch_file)
            done = _run(box, instance.hidden)
            reader, problem = instance.hidden.reader, _problem(done)
            left = {} if reader is None or problem else _left(box, reader)
        kept = {} if reader is None or problem else {"": done.stdout, **left}
        if reader is not None and not problem:
            done, problem = _read(provider, base, reader, left, done)
        return Finding(_report(done, problem, name), state=base.digest, log=done.stdout, left=kept)
    finally:
        provider.discard(base)


def _apply(box: Sandbox, patch: bytes, left_at: str) -> None:
    """Apply the patch to the repository. If the set's script applies it, only write it to `left_at`.

    Raises:
        GitRefused: the patch does not apply.
    """
    if left_at:
        box.write(left_at, patch)
    if left_at or not patch:
        return
    box.write(PATCH, patch)
    refusal = b""
    for way in WAYS:
        if refusal:  # otherwise, what a failed attempt left behind would make the next one fail as well
            box.exec(["/bin/bash", "-c", "git checkout -- . ; git clean -fd"], timeout_s=GIT_TIMEOUT_S)
        done = box.exec([*way, PATCH], timeout_s=GIT_TIMEOUT_S)
        if done.exit_code == 0:
            return
        refusal = refusal or done.stderr or b"git refuses it"
    if box.exec(["git", "apply", "--check", "--reverse", PATCH], timeout_s=GIT_TIMEOUT_S).exit_code != 0:
        raise GitRefused(refusal.decode(errors="replace").strip().splitlines()[-1][:500])


def _text_of(patch: bytes) -> bytes:
    """A patch without its binary files."""
    return b"".join(part for part in sections(patch) if not _BINARY.search(part))


def _run(box: Sandbox, hidden: Hidden) -> ExecResult:
    """Run the eval script; its output is the log."""
    script = harness_assets.put_in(box, hidden.assets, _recording(hidden.eval_script))
    box.write(SCRIPT, script.encode("utf-8", "surrogateescape"))
    both = ["/bin/bash", "-c", f"exec /bin/bash {SCRIPT} 2>&1"]
    return box.exec(both, timeout_s=TIMEOUT_S, env=OFFLINE)


def _left(box: Sandbox, reader: Reader) -> dict[str, bytes]:
    """The logs that the tests left for a set's own program; missing files are left out."""
    logs: dict[str, bytes] = {}
    for path in reader.logs:
        with suppress(OSError):
            logs[path] = box.read(path, max_bytes=LOG_BYTES)
    return logs


def _read(
    provider: Provider, base: Snapshot, reader: Reader, left: Mapping[str, bytes], tests: ExecResult
) -> tuple[ExecResult, str]:
    """Run a set's own program on the logs, in a fork of the base state, which has no files or processes of the tests.
    Returns its output between the markers of a log, and why that cannot be used (empty: it can)."""
    if tests.exit_code:
        return tests, f"the eval script ended with exit code {tests.exit_code} before the logs could be read"
    with provider.at(base) as box:
        for path, data in left.items():
            box.write(path, data)
        box.write(SCRIPT, reader.script.encode("utf-8", "surrogateescape"))
        done = box.exec(["/bin/bash", SCRIPT], timeout_s=TIMEOUT_S, env=OFFLINE)
    marked = f"{START}\n".encode() + done.stdout + f"\n{END}\n".encode()
    return replace(done, stdout=marked), _problem(done)


def _problem(done: ExecResult) -> str:
    """Why a log cannot be used, regardless of its content; empty if it can."""
    if done.timed_out:
        return f"the eval script took longer than {TIMEOUT_S} s"
    if done.stdout_bytes > len(done.stdout):
        return f"of a log of {done.stdout_bytes} bytes {len(done.stdout)} were kept"
    return ""


def _report(done: ExecResult, problem: str, parser: str) -> SuiteReport:
    if problem:
        return SuiteReport(valid=False, problem=problem, timed_out=done.timed_out, adapter=LOG)
    return read_log(done.stdout.decode(errors="replace"), partial(parse, parser))


def _recording(script: str) -> str:
    """The script as the official harness runs it: traced, and with a line that prints the exit code of the command
    before the end marker."""
    lines = [line for line in script.strip().split("\n") if line not in HEADER]
    end = next((number for number, line in enumerate(lines) if END in line), None)
    if end is not None:
        lines[end : end + 1] = ["RAMIFY_EXIT_CODE=$?", lines[end], f'echo "{EXIT_CODE}: $RAMIFY_EXIT_CODE"']
    return "\n".join([*HEADER, *lines, ""])
