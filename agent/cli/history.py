"""`ramify log` and `ramify promote`: show a run as a git history, and make a branch from one of its states."""

from __future__ import annotations

import os
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.runs import LAST, RunDir
from agent.cli.show import Node, read_run
from agent.counting import first_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from agent.analysis.history import History
    from agent.run.run import Run
    from sandboxes import Provider


NAMED = 5
"""The maximum number of files in a message."""


def log(
    run: RunDir = LAST,
    graph: Annotated[bool, typer.Option("--graph", help="Draw the history as a graph.")] = False,
) -> None:
    """Print the states of a run as a git history. Each has its number, value, tests and action; the newest is first.

    The history is the repository RUN/history.git, which is updated first. To fetch it into your own clone:
    git fetch RUN/history.git 'refs/ramify/*:refs/ramify/*'"""
    from agent.analysis.history import NODES

    with read_run(run) as opened:
        history = _kept(opened)
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    drawn = history.git.run(
        "log", "--oneline", "--topo-order", *(["--graph"] if graph else []),
        f"--color={'always' if coloured else 'never'}", f"--glob={NODES}", fine=(0, 128)
    )  # fmt: skip
    sys.stdout.buffer.write(drawn)


def promote(
    run: RunDir,
    node: Node,
    branch: Annotated[str, typer.Option("--branch", metavar="NAME", help="The new branch.")],
    repo: Annotated[
        Path | None,
        typer.Option("--repo", metavar="DIR", help="The repository. Default: the checkout that was searched."),
    ] = None,
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="The first line of the commit's message.")
    ] = "",
) -> None:
    """Create a git branch from a state. The branch has one commit on top of the commit that the run began from;
    nothing is checked out."""
    from agent.analysis.history import promote as make
    from agent.analysis.history import uncommitted
    from agent.run.paths import checkout_of
    from agent.untrusted import one_line

    with read_run(run) as opened:
        place = repo or checkout_of(run, "name the repository for the branch: --repo DIR")
        history = _kept(opened)
        commit = make(opened, history, node, branch, place, message)
        files = uncommitted(history, node)
    if files:
        named = first_of([*map(one_line, files)], NAMED)
        sys.stderr.write(f"the branch also holds what was not committed when the run began: {named}\n")
    sys.stdout.write(f"{branch} {commit}\n")


def _kept(run: Run) -> History:
    from agent.analysis.history import keep
    from agent.untrusted import one_line

    history = keep(run, lambda: _states(run))
    for node, why in history.missing.items():
        sys.stderr.write(f"state {node} has no commit: {one_line(why)}\n")
    return history


def _states(run: Run) -> AbstractContextManager[Provider | None]:
    from agent.build.sandboxes import make_provider
    from agent.config import restore
    from agent.run.paths import store_of

    store = store_of(run.journal.directory)
    if run.started is None or not store.is_dir():
        return nullcontext()
    return closing(make_provider(restore(run.started.settings), store))
