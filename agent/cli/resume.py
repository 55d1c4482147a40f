"""`ramify resume`: continues a run."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.ci.failures import report_failures
from agent.cli.runs import LAST, RunDir


@report_failures
def resume(
    run: RunDir = LAST,
    unfinished: Annotated[
        bool,
        typer.Option("--unfinished", help="Also finish the rollouts that were started but not needed."),
    ] = False,
    max_nodes: options.MaxNodes = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The address of the model's server, if it has changed.")
    ] = None,
    as_json: options.Json = False,
    patch_out: options.PatchOut = None,
    apply: options.Apply = False,
    accept: options.Accept = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Continue a run that was interrupted, crashed or hit a limit. After a limit, give a higher one: limits apply to
    the whole run, earlier sessions included."""
    from agent.analysis.report.progress import Progress
    from agent.build import composition
    from agent.cli.interactive import OutputOptions, run_interactively, say
    from agent.run.paths import begun, checkout_of

    limits = {"max_nodes": max_nodes, "max_usd": max_usd, "max_tokens": max_tokens, "max_seconds": max_seconds}
    budget = {name: limit for name, limit in limits.items() if limit is not None}
    by_hand = f"leave out --apply, and apply the patch by hand: ramify show {run} --patch"
    place = checkout_of(run, by_hand) if apply else None
    output = OutputOptions(as_json, patch_out, place, bool(accept), strict, quiet=quiet)
    begun(run)
    if not quiet:
        say(f"run {run}")
    progress = Progress(quiet=quiet)
    progress.catch_up(run, budget)
    search = partial(composition.resume, run, budget=budget, base_url=base_url, unfinished=unfinished)
    raise typer.Exit(run_interactively(search, output, progress))
