"""`ramify solve`: finds a tested patch for an issue, or for tests that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.ci.failures import report_failures


@report_failures
def solve(
    context: typer.Context,
    issue: Annotated[
        str | None,
        typer.Argument(metavar="ISSUE|-", help="A file, - for stdin, or owner/repository#number for one on GitHub."),
    ] = None,
    repo: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A git checkout, which is only read. Default: this directory; with --image, the one in the image.",
        ),
    ] = None,
    issue_text: Annotated[str | None, typer.Option("--issue", metavar="TEXT", help="The text of the issue.")] = None,
    test: options.Test = None,
    test_framework: options.TestFramework = None,
    goal_test: options.GoalTests = None,
    goal_failing: options.GoalFailing = False,
    from_junit: options.FromJunit = None,
    model: options.Models = None,
    effort: options.EffortName = None,
    recipe: options.Recipe = None,
    search: options.SearchName = None,
    value: options.ValueName = None,
    sandbox: options.SandboxKind = None,
    image: options.Image = None,
    python: options.Python = None,
    setup: options.Setup = None,
    paranoid: options.Paranoid = False,
    instructions: options.Instructions = None,
    config: options.Config = None,
    model_price: options.ModelPrice = None,
    max_nodes: options.MaxNodes = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    memory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Memory file: recall from it, and remember this run in it.")
    ] = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Use no memory, even if the settings name one.")
    ] = False,
    workers: options.Workers = None,
    rollouts: options.Rollouts = None,
    rounds: options.Rounds = None,
    delegate: Annotated[
        bool, typer.Option("--delegate", help="Divide the issue into parts, search each on its own, and merge.")
    ] = False,
    seed: options.Seed = None,
    out: options.Out = None,
    as_json: options.Json = False,
    patch_out: options.PatchOut = None,
    summary_md: options.SummaryMd = None,
    apply: options.Apply = False,
    accept: options.Accept = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Find a tested patch for an issue. It is printed on stdout, everything else on stderr."""
    from agent.cli.ci.junit import read_failures, statement
    from agent.cli.interactive import OutputOptions
    from agent.cli.new_run import SolveRequest, read_issue, run_solve

    failures = read_failures(from_junit, repo or Path()) if from_junit else ()
    goals = (*(goal_test or ()), *(failure.test for failure in failures))
    text = read_issue(issue, issue_text, may_be_empty=bool(goals) or goal_failing)
    goal_failing = goal_failing or bool(failures)
    request = SolveRequest(text or (statement(failures) if failures else ""), goals, repo, test, goal_failing)
    output = OutputOptions(as_json, patch_out, None, bool(accept), strict, summary_md, quiet)
    settings = options.settings_of(context.params, *(["memory.enabled=false"] if no_memory else ()))
    raise typer.Exit(run_solve(request, settings, out, output, apply=apply))
