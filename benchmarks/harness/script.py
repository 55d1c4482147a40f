"""Grading by an eval script: the patch put on the image's repository, the script run on that, its log believed or not.

Law: what is done is what the official harness does in its container (5.0.2, `harness/run_evaluation.py`), but with no
network, in a sandbox of our own.
"""

from __future__ import annotations

from functools import partial

from agent.errors import UsageError
from agent.measure import SuiteReport
from agent.measure.logs import ALIASES, PARSERS, parse
from benchmarks.clones import GitRefused
from benchmarks.harness import assets
from benchmarks.harness.logs import END, EXIT_CODE, LOG, read_log
from benchmarks.instances import Hidden, Instance
from benchmarks.verdicts import Finding
from sandboxes import Provider, Sandbox

__all__ = ["LOG_BYTES", "run_script"]

LOG_BYTES = 32 << 20
"""Of a log that is read. A sandbox for eval scripts should let a command print as much."""
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
"""How a patch is tried, each from a clean tree."""
OFFLINE = {"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""There is no network: whoever asks for one hears so at once."""


def run_script(instance: Instance, patch: bytes, provider: Provider) -> Finding:
    """What the log of the instance's eval script says with a patch; an empty one changes nothing.

    Raises:
        GitRefused: the patch does not apply.
        InstanceBroken: a file that the tests need is not to be had.
        UsageError: nothing reads logs by the name that the instance gives.
        sandboxes.SandboxError: the script cannot be run.
    """
    name = instance.hidden.log_parser
    if not name:
        raise UsageError(
            f"nothing here reads the log of the tests of {instance.id}; grade it by the harness of its set "
            "(--harness swebench, where that is SWE-bench's); if it is of SWE-bench Pro, put the folder run_scripts "
            "of its repository beside the file of rows"
        )
    if name not in {*PARSERS, *ALIASES}:
        raise UsageError(
            f"nothing here reads logs by the name {name!r}, which {instance.id} gives; --harness swebench may"
        )
    base = provider.create(instance.hidden.workspace or instance.task.workspace)
    try:
        with provider.at(base) as box:
            _apply(box, patch, instance.hidden.patch_file)
            report, log = _run(box, instance.hidden)
            return Finding(report, state=base.digest, log=log)
    finally:
        provider.discard(base)


def _apply(box: Sandbox, patch: bytes, left_at: str) -> None:
    """Put the patch on the repository, or raise GitRefused; only leave it where a script of the set looks for it."""
    if left_at:
        box.write(left_at, patch)
    if left_at or not patch:
        return
    box.write(PATCH, patch)
    refusal = b""
    for way in WAYS:
        if refusal:  # what a failed way left behind would make the next one fail, too
            box.exec(["/bin/bash", "-c", "git checkout -- . ; git clean -fd"], timeout_s=GIT_TIMEOUT_S)
        done = box.exec([*way, PATCH], timeout_s=GIT_TIMEOUT_S)
        if done.exit_code == 0:
            return
        refusal = refusal or done.stderr or b"git refuses it"
    if box.exec(["git", "apply", "--check", "--reverse", PATCH], timeout_s=GIT_TIMEOUT_S).exit_code != 0:
        raise GitRefused(refusal.decode(errors="replace").strip().splitlines()[-1][:500])


def _run(box: Sandbox, hidden: Hidden) -> tuple[SuiteReport, bytes]:
    """What the log of the eval script says, and the log."""
    script = assets.put_in(box, hidden.assets, _recording(hidden.eval_script))
    box.write(SCRIPT, script.encode("utf-8", "surrogateescape"))
    both = ["/bin/bash", "-c", f"exec /bin/bash {SCRIPT} 2>&1"]
    done = box.exec(both, timeout_s=TIMEOUT_S, env=OFFLINE)
    log = done.stdout
    if done.timed_out:
        late = f"the eval script took longer than {TIMEOUT_S} s"
        return SuiteReport(valid=False, problem=late, timed_out=True, adapter=LOG), log
    if done.stdout_bytes > len(log):
        cut = f"of a log of {done.stdout_bytes} bytes {len(log)} were kept"
        return SuiteReport(valid=False, problem=cut, adapter=LOG), log
    return read_log(log.decode(errors="replace"), partial(parse, hidden.log_parser)), log


def _recording(script: str) -> str:
    """The script as the official harness runs it: traced, and saying how the command before the end marker ended."""
    lines = [line for line in script.strip().split("\n") if line not in HEADER]
    end = next((number for number, line in enumerate(lines) if END in line), None)
    if end is not None:
        lines[end : end + 1] = ["RAMIFY_EXIT_CODE=$?", lines[end], f'echo "{EXIT_CODE}: $RAMIFY_EXIT_CODE"']
    return "\n".join([*HEADER, *lines, ""])
