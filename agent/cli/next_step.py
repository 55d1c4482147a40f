"""Suggests the command that the user probably wants after a search has ended."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.budget import Stop
from agent.errors import RamifyError
from agent.run.grade import Grade
from agent.run.paths import checkout_of, is_begun, name_of

if TYPE_CHECKING:
    from agent.solver.result import Result


RAISED: Mapping[Stop, str] = {
    Stop.NODES: "--max-states N",
    Stop.TOKENS: "--max-tokens N",
    Stop.COST: "--max-usd N",
    Stop.TIME: "--max-seconds N",
}
"""The options of `ramify resume` that raise a limit."""
RESUMABLE = (*RAISED, Stop.INTERRUPTED, Stop.FAILED)


def next_step(result: Result, applied_to: Path | None) -> str:
    """Return the suggested command: to look at an applied patch, to apply a patch, to resume a run that was cut short,
    or to look at the search."""
    ramify, run = program_name(), shlex.quote(name_of(result.run_dir))
    if applied_to is not None:
        return f"git -C {shlex.quote(str(applied_to))} diff"
    if result.resolved or result.grade is Grade.DECLARED:
        accept = "" if result.resolved else " --accept declared"
        return f"{ramify} apply {run}{accept}" if _has_checkout(result.run_dir) else f"{ramify} show {run} --patch"
    if result.stop in RAISED:
        spent = f", and {result.seconds:.0f} s are used up" if result.stop is Stop.TIME else ""
        higher = (
            f"{ramify} resume {run} {RAISED[result.stop]}, with a higher limit (it applies to the whole run{spent})"
        )
        return higher if result.usage.model_calls else f"{higher}; or a new run with a model: --model NAME"
    if not (result.nodes or is_begun(result.run_dir)):
        return "the same command again; this run did not start"
    return f"{ramify} {'resume' if result.stop in RESUMABLE else 'show'} {run}"


def program_name() -> str:
    """Return how the user calls this program: its name if the shell finds it, else its path."""
    program = Path(sys.argv[0])
    if program.name != "ramify" or shutil.which("ramify"):
        return "ramify"
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


def _has_checkout(run: Path) -> bool:
    try:
        return bool(checkout_of(run, ""))
    except RamifyError:
        return False
