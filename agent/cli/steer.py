"""`ramify fork`, `prune` and `pin`: steer a search while it runs, or before it is resumed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent.cli.runs import RunDir
from agent.cli.show import Node


def fork(
    run: RunDir,
    node: Node,
    hint: Annotated[str, typer.Option(metavar="TEXT", help="What the policy should try there.")] = "",
    times: Annotated[int, typer.Option(metavar="K", min=1, help="How many times to expand it.")] = 1,
) -> None:
    """Expand a state next, regardless of what the search would select. The run may be stopped or running."""
    _steer(run, "fork", node, hint, times=times)


def prune(run: RunDir, node: Node) -> None:
    """Never expand a state or any state below it again."""
    _steer(run, "prune", node)


def pin(run: RunDir, node: Node, off: Annotated[bool, typer.Option("--off", help="Remove the pin.")] = False) -> None:
    """Expand only a state and the states below it. The pin holds as long as any of them can be expanded."""
    _steer(run, "unpin" if off else "pin", node)


def _steer(
    run: Path, act: Literal["fork", "prune", "pin", "unpin"], node: int, hint: str = "", *, times: int = 1
) -> None:
    from agent.run.command_queue import steer
    from agent.run.commands import Order

    outcomes = [steer(run, Order(act, node, hint)) for _ in range(times)]
    if outcomes[-1] == "recorded":
        sys.stdout.write(f"recorded: the run is stopped; continue it with: ramify resume {run}\n")
    else:
        sys.stdout.write("queued: the running search carries it out before its next selection\n")
