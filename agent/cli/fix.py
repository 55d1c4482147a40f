"""`ramify fix`: repairs the failing tests of a red build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.ci.failures import report_failures


@report_failures
def fix(
    context: typer.Context,
    tests: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEST", help="Failing tests, as test reports name them. Default: all tests that fail now."
        ),
    ] = None,
    repo: Annotated[Path, typer.Option(metavar="DIR", help="A git checkout.")] = Path(),
    test: options.Test = None,
    test_framework: options.TestFramework = None,
    model: options.Models = None,
    effort: options.EffortName = None,
    recipe: options.Recipe = None,
    sandbox: options.SandboxKind = None,
    image: options.Image = None,
    python: options.Python = None,
    setup: options.Setup = None,
    instructions: options.Instructions = None,
    config: options.Config = None,
    max_usd: options.MaxUsd = None,
    max_seconds: options.MaxSeconds = None,
    workers: options.Workers = None,
    out: options.Out = None,
    as_json: options.Json = False,
    patch_out: options.PatchOut = None,
    apply: options.Apply = False,
    accept: options.Accept = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Make failing tests pass without breaking others."""
    from agent.cli.interactive import OutputOptions
    from agent.cli.new_run import SolveRequest, run_solve

    settings = options.settings_of(context.params)
    request = SolveRequest("", tuple(tests or ()), repo, test, goal_failing=not tests)
    output = OutputOptions(as_json, patch_out, None, bool(accept), strict, quiet=quiet)
    raise typer.Exit(run_solve(request, settings, out, output, apply=apply))
