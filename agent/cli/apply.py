"""`ramify apply`: applies the patch of a run to its checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.runs import LAST, RunDir


def apply(
    context: typer.Context,
    run: RunDir = LAST,
    repo: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to apply it. Default: the checkout that was searched.")
    ] = None,
    accept: options.Accept = None,
) -> None:
    """Apply the patch of a run to its checkout, whole or not at all. Exit code 1 if it is not solved or submitted."""
    from agent.cli.interactive import apply_answer
    from agent.cli.show import answer_of, read_run
    from agent.errors import UsageError
    from agent.run.paths import checkout_of, name_of
    from sandboxes.git.foreign import locate

    source = context.get_parameter_source("run")
    if source is not None and source.name == "DEFAULT" and repo is None and locate(Path.cwd()) is None:
        raise UsageError(
            f"the current directory is not a git checkout; name the run: ramify apply {name_of(run)} (the last one)"
        )
    place = repo or checkout_of(run, "name the checkout: --repo DIR")
    with read_run(run) as opened:
        result = answer_of(opened)
    raise typer.Exit(0 if apply_answer(result, place, accept_declared=bool(accept)) else 1)
