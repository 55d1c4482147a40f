"""Runs a search at a terminal: shows its progress, lets signals cancel it, and delivers its result.

Invariant: the first signal stops the search and keeps the best patch so far; the second ends the process at once.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from agent.analysis.report.progress import Progress
from agent.analysis.report.summary import as_json, as_text
from agent.budget import Stop
from agent.cli import checkout
from agent.cli.ci import github
from agent.cli.next_step import next_step
from agent.counting import counted
from agent.engine.session import Cancellation
from agent.errors import UsageError, exit_code_of
from agent.run.grade import Grade
from agent.untrusted import escaped_lines

if TYPE_CHECKING:
    from agent.solver.result import Result


_T = TypeVar("_T")

TIMED_OUT = 124


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What to do with the result, from the options of the command line."""

    as_json: bool = False
    """Print one JSON object on stdout instead of the patch."""
    patch_out: Path | None = None
    apply_to: Path | None = None
    """The checkout to apply a solved or submitted patch to."""
    accept_declared: bool = False
    """Apply a submitted patch even if it breaks tests that the model declares to be wrong."""
    strict: bool = False
    """Exit with code 1 for a patch that breaks tests which the model declares to be wrong."""
    summary_md: Path | None = None
    """A file to append a summary in Markdown to."""
    quiet: bool = False
    """Show no progress and no summary."""

    def __post_init__(self) -> None:
        for option, path in (("--patch-out", self.patch_out), ("--summary-md", self.summary_md)):
            if path is not None and not path.absolute().parent.is_dir():
                raise UsageError(f"{option} {path}: there is no directory {path.parent}")
            if path is not None and path.is_dir():
                raise UsageError(f"{option} {path} is a directory; name a file")


def run_interactively(search: Callable[..., Result], output: OutputOptions, progress: Progress | None = None) -> int:
    """Call `search(cancel=..., on_event=...)`, deliver its result, and return the exit code of the process.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: from the search, or the patch no longer applies.
    """
    result, received = with_signals(search, progress or Progress(quiet=output.quiet))
    path = _write_patch(result, output.patch_out)
    facts, code = as_json(result, path), _exit_code(result, received, output.strict)
    try:
        _deliver(result, facts, path, output)
    finally:
        _tell_pipeline(result, facts, path, code, output.summary_md)
    return code


def with_signals(search: Callable[..., _T], progress: Progress | None = None) -> tuple[_T, signal.Signals | None]:
    """Call `search(cancel=..., on_event=...)` and show its progress. Returns its result, and the signal that cancelled
    it.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: from the search.
    """
    with _interruptible() as interruption, progress or Progress() as shown:
        return search(cancel=interruption.cancel, on_event=shown), interruption.received


def _tell_pipeline(
    result: Result, facts: Mapping[str, Any], path: Path | None, code: int, summary_md: Path | None
) -> None:
    """Write the outputs of the step if `$GITHUB_OUTPUT` is set, and the summary if requested. A failure to write is
    only reported."""
    try:
        if outputs := os.environ.get("GITHUB_OUTPUT"):
            values = {key: facts[key] for key in ("status", "patch_path", "cost_usd", "run_dir")}
            values |= {"declared": json.dumps(facts["declared"]), "broken": json.dumps(facts["broken"])}
            github.write_outputs(Path(outputs), values | {"resolved": str(result.resolved).lower(), "exit_code": code})
        if summary_md is not None:
            with summary_md.open("a", encoding="utf-8") as file:
                file.write(github.summary(facts, as_text(result, path), result.patch))
    except OSError as error:
        say(f"cannot write $GITHUB_OUTPUT or --summary-md: {error}")


def print_patch(patch: bytes) -> None:
    """Write a patch to stdout, byte for byte; on a terminal, control and invisible characters are escaped."""
    if sys.stdout.isatty():
        patch = escaped_lines(patch.decode(errors="backslashreplace")).encode()
    sys.stdout.buffer.write(patch)
    sys.stdout.buffer.flush()


def _deliver(result: Result, facts: Mapping[str, Any], path: Path | None, output: OutputOptions) -> None:
    if not output.quiet:
        say(as_text(result, path, verbose=logging.getLogger("agent").isEnabledFor(logging.INFO)))
    elif result.error is not None:
        say(f"ramify: {result.error}")
    if output.as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
    else:
        print_patch(result.patch)
    applied = output.apply_to is not None and apply_answer(
        result, output.apply_to, accept_declared=output.accept_declared
    )
    if not output.quiet:
        say(f"next     {next_step(result, output.apply_to if applied else None)}")


def apply_answer(result: Result, place: Path, *, accept_declared: bool) -> bool:
    """Apply a solved or submitted patch to a checkout, and report that, or why not. Returns whether it was applied.

    Raises:
        agent.errors.RamifyError: the patch no longer applies.
    """
    declared = result.grade is Grade.DECLARED
    if result.resolved or (declared and accept_declared):
        checkout.apply(place, result.patch, result.run_dir)
        say(f"applied to {place}")
        return True
    if declared:
        broken = counted(len(result.declared), "test that passed before fails", "tests that passed before fail")
        say(
            f"nothing applied to {place}: {broken} with the patch, and the model declares that what they check "
            "contradicts the issue (see above); if you agree, apply the patch with --accept declared"
        )
    else:
        patch = f"; the best change so far: ramify show {result.run_dir} --patch" if result.patch else ""
        say(f"nothing applied to {place}: the issue is not solved{patch}")
    return False


def _write_patch(result: Result, patch_out: Path | None) -> Path | None:
    """Return the file that holds the patch, which is first written to `patch_out` if given. None: there is no patch."""
    if not result.patch:
        return None
    if patch_out is None:
        return result.run_dir / "patch.diff"
    patch_out.write_bytes(result.patch)
    return patch_out


def _exit_code(result: Result, received: signal.Signals | None, strict: bool) -> int:
    if result.resolved or (result.grade is Grade.DECLARED and not strict):
        return 0
    if received is not None:
        return 128 + received
    if result.error is not None:
        return exit_code_of(result.error)
    return TIMED_OUT if result.stop is Stop.TIME else 1


@dataclass(slots=True)
class _Interruption:
    cancel: Cancellation = field(default_factory=Cancellation)
    received: signal.Signals | None = None


@contextmanager
def _interruptible() -> Iterator[_Interruption]:
    """Let SIGINT and SIGTERM set `cancel` during the block; a second signal has its usual effect."""
    interruption = _Interruption()

    def stop(number: int, frame: FrameType | None) -> None:
        interruption.received = signal.Signals(number)
        interruption.cancel.set()
        for signal_ in handlers:
            signal.signal(signal_, signal.SIG_DFL)
        say("stopping: the best patch so far will be patch.diff in the run's directory")
        say("(a second signal ends the process at once, and leaves salvaged.patch there instead)")

    handlers = {signal_: signal.signal(signal_, stop) for signal_ in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for signal_, handler in handlers.items():
            signal.signal(signal_, handler)


def say(line: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(line + "\n")
