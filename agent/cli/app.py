"""`ramify`: the commands and their options. Everything heavy is imported where it is used."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import config as cli_config
from agent.cli import diagnose as cli_diagnose
from agent.cli import export as cli_export
from agent.cli import history as cli_history
from agent.cli import memory as cli_memory
from agent.cli import options, red_build
from agent.cli import recipes as cli_recipes
from agent.cli import replay as cli_replay
from agent.cli import runs as cli_runs
from agent.cli import serve as cli_serve
from agent.cli import shorten as cli_shorten
from agent.cli import train as cli_train
from agent.cli.runs import RunDir
from agent.errors import UsageError

__all__ = ["app"]

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        sys.stdout.write(f"ramify {version('ramify')}\n")
        raise typer.Exit


@app.callback()
def ramify(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Finds a tested patch for an issue by tree search over exact sandbox states."""


@app.command()
def solve(
    issue: Annotated[
        str | None,
        typer.Argument(metavar="[ISSUE|-]", help="A file, - for stdin, or owner/repository#number for one on GitHub."),
    ] = None,
    repo: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A git checkout, which is only read. Default: the one in the image, else this one."
        ),
    ] = None,
    issue_text: Annotated[str | None, typer.Option("--issue", metavar="TEXT", help="The text of the issue.")] = None,
    test: options.Test = None,
    test_framework: options.TestFramework = None,
    goal_test: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A failing test that has to pass; repeatable. Default: not known."),
    ] = None,
    goal_failing: options.GoalFailing = False,
    from_junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JUnit XML of a red build: the tests that failed there are goals."),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(metavar="mutate|MODEL", help="What proposes the edits; several share one tree.")
    ] = None,
    recipe: options.Recipe = None,
    search: options.SearchName = None,
    value: options.ValueName = None,
    sandbox: options.SandboxKind = None,
    image: options.Image = None,
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
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Use no memory, whatever the settings say.")] = False,
    workers: options.Workers = None,
    rollouts: options.Rollouts = None,
    rounds: options.Rounds = None,
    delegate: Annotated[
        bool, typer.Option("--delegate", help="Divide the issue into parts, search each on its own, and merge.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Random seed; with one worker, it decides the run.")
    ] = None,
    out: options.Out = None,
    as_json: options.Json = False,
    patch_out: options.PatchOut = None,
    summary_md: options.SummaryMd = None,
    apply: options.Apply = False,
    accept: options.Accept = None,
    strict: options.Strict = False,
) -> None:
    """Find a tested patch for ISSUE. The patch is printed on stdout, everything else on stderr."""
    from agent.cli.ci.junit import read_failures, statement
    from agent.cli.interactive import OutputOptions, accepted
    from agent.cli.solve import SolveRequest, begin, read_issue
    from agent.config import given, naming
    from agent.models.prices import dollars

    failures = read_failures(from_junit, repo or Path()) if from_junit else ()
    goals = (*(goal_test or ()), *(failure.test for failure in failures))
    text = read_issue(issue, issue_text, may_be_empty=bool(goals) or goal_failing)
    flags = {
        **naming(policy or ()),
        "recipe": recipe,
        "search.name": search,
        "value.name": value,
        "measure.framework": test_framework,
        "sandbox.kind": sandbox,
        "sandbox.image": image,
        "sandbox.setup": setup or None,
        "sandbox.paranoid": paranoid or None,
        "instructions": instructions and str(instructions),
        "model.price": model_price and dollars(model_price),
        "budget.max_nodes": max_nodes,
        "budget.max_usd": max_usd,
        "budget.max_tokens": max_tokens,
        "budget.max_seconds": max_seconds,
        "memory.path": memory and str(memory),
        "memory.enabled": False if no_memory else None,
        "workers": workers,
        "rollouts": rollouts,
        "rounds": rounds,
        "delegate": delegate or None,
        "seed": seed,
    }
    request = SolveRequest(text or (statement(failures) if failures else ""), goals, repo, test, goal_failing)
    output = OutputOptions(as_json, patch_out, None, accepted(accept), strict, summary_md)
    raise typer.Exit(begin(request, given(config or (), flags), out, output, apply=apply))


@app.command("resume")
def resume_run(
    run: RunDir,
    max_nodes: options.MaxNodes = None,
    max_usd: options.MaxUsd = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    as_json: options.Json = False,
    patch_out: options.PatchOut = None,
    apply: options.Apply = False,
    accept: options.Accept = None,
    strict: options.Strict = False,
) -> None:
    """Resume a run that was interrupted, crashed, or reached a limit (set a higher one)."""
    from agent.analysis.report.progress import Progress
    from agent.build.composition import resume
    from agent.cli.interactive import OutputOptions, accepted, run_interactively
    from agent.run.paths import checkout_of

    limits = {"max_nodes": max_nodes, "max_usd": max_usd, "max_tokens": max_tokens, "max_seconds": max_seconds}
    budget = {name: limit for name, limit in limits.items() if limit is not None}
    by_hand = f"leave out --apply, and apply the patch by hand: ramify show {run} --patch"
    output = OutputOptions(as_json, patch_out, checkout_of(run, by_hand) if apply else None, accepted(accept), strict)
    progress = Progress()
    progress.catch_up(run, budget)
    raise typer.Exit(run_interactively(partial(resume, run, budget=budget), output, progress))


for command in (
    red_build.fix,
    red_build.check_patch,
    cli_export.export,
    cli_shorten.shorten,
    cli_replay.replay,
    cli_diagnose.diagnose,
    cli_runs.show,
    cli_runs.fork,
    cli_runs.prune,
    cli_runs.pin,
    cli_history.log,
    cli_history.promote,
    cli_serve.serve,
    cli_recipes.recipes,
):
    app.command()(command)
app.add_typer(cli_memory.app, name="memory")
app.add_typer(cli_config.app, name="config")
app.add_typer(cli_train.app, name="train")


@app.command()
def doctor(
    model: Annotated[
        str | None, typer.Option(metavar="openai/NAME", help="Examine the server of this model instead.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL of the server, as in model.base_url.")
    ] = None,
) -> None:
    """Show which sandboxes work on this machine, and what to change where one does not."""
    from agent.cli.doctor.model_probe import examine_model
    from agent.cli.doctor.report import examine

    if base_url and model is None:
        raise UsageError(f"--base-url {base_url} is for --model openai/NAME")
    findings = examine() if model is None else tuple(examine_model(model, base_url))
    for finding in findings:
        sys.stdout.write(f"{'ok  ' if finding.ok else 'no  '}{finding.name:<10} {finding.detail}\n")
        if finding.remedy:
            sys.stdout.write(f"    {'':<10} -> {finding.remedy}\n")
    good = any(f.ok for f in findings if f.is_sandbox) if model is None else findings[0].ok
    raise typer.Exit(0 if good else 6 if model is None else 4)


@app.command()
def clean(
    states: Annotated[
        bool,
        typer.Option(
            "--states", help="Also remove the states of runs that have ended, which cannot be resumed after that."
        ),
    ] = False,
    environments: Annotated[
        bool,
        typer.Option(
            "--environments", help="Also remove environments and set-ups older than an hour that no run's states need."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
) -> None:
    """Remove what earlier runs left on this machine, and list it. Journals and patches are kept."""
    from agent.cli.cleanup import leftovers

    done = "would remove" if dry_run else "removed"
    count = size = 0
    for left in leftovers(states=states, environments=environments):
        if dry_run or left.remove():
            count, size = count + 1, size + left.size_bytes
            sys.stdout.write(f"{done} {left.name}, {left.size_bytes / (1 << 20):.0f} MiB\n")
    sys.stdout.write(f"{done} {count} in all, {size / (1 << 20):.0f} MiB\n")


ELSEWHERE = {"bench": "benchmarks.cli.app", "serve-report": "benchmarks.cli.site", "round": "benchmarks.cli.round"}
"""Commands of another package, and the module with the `app` that runs them."""


def _delegate(context: typer.Context) -> None:
    """Run a command of a package that may import this one, but not the other way round."""
    name, module = f"ramify {context.info_name}", ELSEWHERE[context.info_name or ""]
    try:
        commands = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in ("benchmarks", module):
            raise
        raise UsageError(f"{name}: the package `benchmarks` is not installed; install all of Ramify") from error
    commands.app(args=context.args, prog_name=name)


for name, text in (
    ("bench", "Run, grade and compare benchmarks (`ramify bench --help`)."),
    ("serve-report", "Show a batch or a folder of runs in a browser (`ramify serve-report --help`)."),
    ("round", "Search, train on the trees, keep the better model (`ramify round --help`)."),
):
    pass_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=text, context_settings=pass_on, add_help_option=False)(_delegate)
