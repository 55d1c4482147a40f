"""`ramify`: the commands and their options. Everything heavy is imported where it is used."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli import apply as cli_apply
from agent.cli import check_patch as cli_check_patch
from agent.cli import config as cli_config
from agent.cli import diagnose as cli_diagnose
from agent.cli import export as cli_export
from agent.cli import fix as cli_fix
from agent.cli import history as cli_history
from agent.cli import memory as cli_memory
from agent.cli import options
from agent.cli import recipes as cli_recipes
from agent.cli import reflect as cli_reflect
from agent.cli import replay as cli_replay
from agent.cli import run_list as cli_run_list
from agent.cli import runs as cli_runs
from agent.cli import serve as cli_serve
from agent.cli import shorten as cli_shorten
from agent.cli import train as cli_train
from agent.cli.ci.failures import failures_told
from agent.cli.help import EXIT_CODES, example, new_app
from agent.cli.run_list import LAST, RunDir
from agent.counting import counted
from agent.errors import UsageError

app = new_app(no_args_is_help=True, epilog=EXIT_CODES)


def _print_version(requested: bool) -> None:
    if requested:
        from agent.version import version

        sys.stdout.write(f"ramify {version()}\n")
        raise typer.Exit


@app.callback()
def ramify(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", is_eager=True, callback=_print_version, help="Print the version and exit."),
    ] = False,
) -> None:
    """Find a tested patch for an issue by tree search over exact states of a sandbox."""


@failures_told
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
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Use no memory, whatever the settings say.")] = False,
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
    from agent.cli.solve import SolveRequest, read_issue, run_solve

    failures = read_failures(from_junit, repo or Path()) if from_junit else ()
    goals = (*(goal_test or ()), *(failure.test for failure in failures))
    text = read_issue(issue, issue_text, may_be_empty=bool(goals) or goal_failing)
    goal_failing = goal_failing or bool(failures)
    request = SolveRequest(text or (statement(failures) if failures else ""), goals, repo, test, goal_failing)
    output = OutputOptions(as_json, patch_out, None, bool(accept), strict, summary_md, quiet)
    settings = options.settings_of(context.params, *(["memory.enabled=false"] if no_memory else ()))
    raise typer.Exit(run_solve(request, settings, out, output, apply=apply))


@failures_told
def resume_run(
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
    """Continue a run that was interrupted, crashed or hit a limit. Raise that limit to continue: limits are those of
    the whole run."""
    from agent.analysis.report.progress import Progress
    from agent.build.composition import resume
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
    search = partial(resume, run, budget=budget, base_url=base_url, unfinished=unfinished)
    raise typer.Exit(run_interactively(search, output, progress))


def doctor(
    model: Annotated[
        str | None, typer.Option(metavar="openai/NAME", help="Examine the server of this model instead.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL of the server, as in model.base_url.")
    ] = None,
) -> None:
    """Show which sandboxes work on this machine. Where one does not, it says what to change."""
    from agent.cli.doctor.model_probe import examine_model
    from agent.cli.doctor.report import examine

    if base_url and model is None:
        raise UsageError(f"--base-url {base_url} needs a model: add --model openai/NAME")
    findings = examine() if model is None else tuple(examine_model(model, base_url))
    for finding in findings:
        sys.stdout.write(f"{'ok  ' if finding.ok else 'no  '}{finding.name:<10} {finding.detail}\n")
        if finding.remedy:
            sys.stdout.write(f"    {'':<10} -> {finding.remedy}\n")
    good = any(f.ok for f in findings if f.is_sandbox) if model is None else findings[0].ok
    raise typer.Exit(0 if good else 6 if model is None else 4)


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
    all_users: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also remove what other users and state directories left, and what all users of the engine share.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before removing states of runs that can be resumed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
) -> None:
    """Remove what earlier runs left on this machine. It lists what it removes, and keeps journals and patches."""
    from agent.cli.cleanup import kept_states, leftovers, resumable

    done = "would remove" if dry_run else "removed"
    count = size = 0
    ask = not dry_run and not yes
    for left in leftovers(states=states, environments=environments, all_users=all_users, ask=ask):
        if dry_run or left.remove():
            count, size = count + 1, size + left.size_bytes
            run = f" of run {left.store.parent}" if left.store else ""
            remark = " (it can be resumed)" if dry_run and left.store and resumable(left.store.parent) else ""
            sys.stdout.write(f"{done} {left.name}{run}, {left.size_bytes / (1 << 20):.0f} MiB{remark}\n")
    sys.stdout.write(f"{done} {count} in all, {size / (1 << 20):.0f} MiB\n" if count else "nothing to remove\n")
    if not states and (kept := kept_states())[0]:
        runs = counted(kept[0], "run that has ended", "runs that have ended")
        sys.stdout.write(f"the states of {runs} are kept, {kept[1] / (1 << 20):.0f} MiB: --states removes them\n")


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


COMMANDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "Solve": {
        "solve": (solve, "ramify solve issue.md --test 'python3 -m pytest -q' --apply"),
        "fix": (cli_fix.fix, "ramify fix --apply", "ramify fix tests/test_a.py::test_b"),
        "resume": (resume_run, "ramify resume --max-seconds 7200", "ramify resume runs/words"),
        "apply": (cli_apply.apply, "ramify apply", "ramify apply runs/words"),
        "check-patch": (cli_check_patch.check_patch, "ramify check-patch fix.patch"),
    },
    "Look": {
        "runs": (cli_run_list.runs, "ramify runs", "ramify runs --all --json", "ramify runs BATCH"),
        "show": (cli_runs.show, "ramify show", "ramify show runs/words --html tree.html"),
        "log": (cli_history.log, "ramify log runs/words --graph"),
        "diagnose": (cli_diagnose.diagnose, "ramify diagnose runs/words"),
        "replay": (cli_replay.replay, "ramify replay runs/words --search mcts"),
        "serve-report": ("Show a batch or a folder of runs in a browser.", "ramify serve-report runs"),
    },
    "Steer": {
        "fork": (cli_runs.fork, "ramify fork runs/words 3 --hint 'look at the parser'"),
        "prune": (cli_runs.prune, "ramify prune runs/words 3"),
        "pin": (cli_runs.pin, "ramify pin runs/words 3"),
        "promote": (cli_history.promote, "ramify promote runs/words 3 --branch fix-words"),
    },
    "Batches": {"bench": ("Run, grade and compare batches of instances.", "ramify bench run tasks --out runs/tasks")},
    "Training": {
        "export": (cli_export.export, "ramify export runs/words --format sft --out data", "ramify export --list"),
        "reflect": (cli_reflect.reflect, "ramify reflect runs/words"),
        "shorten": (cli_shorten.shorten, "ramify shorten runs/words"),
        "train": (cli_train.app, ""),
        "round": (
            "Search, train, compare, and keep the better policy.",
            "ramify round policies --tasks bugs/train --held-out bugs/held-out",
        ),
        "serve": (cli_serve.serve, "ramify serve trained/model --lora mine=trained/adapter"),
        "memory": (cli_memory.app, ""),
    },
    "Set-up": {
        "recipes": (cli_recipes.recipes, "ramify recipes", "ramify recipes mcgs"),
        "doctor": (doctor, "ramify doctor", "ramify doctor --model openai/NAME --base-url http://localhost:8000/v1"),
        "config": (cli_config.app, ""),
        "clean": (clean, "ramify clean --dry-run"),
    },
}
"""The commands by the headings of the help: each a function, a group, or the help of a command of another package; then
its examples."""


def _register(name: str, heading: str, command: Any, *examples: str) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, rich_help_panel=heading)
        return
    more: dict[str, Any] = {"rich_help_panel": heading, "epilog": example(*examples)}
    if isinstance(command, str):
        pass_on = {"allow_extra_args": True, "ignore_unknown_options": True}
        more |= {"help": command, "context_settings": pass_on, "add_help_option": False}
    app.command(name, **more)(_delegate if isinstance(command, str) else command)


for _heading, _commands in COMMANDS.items():
    for _name, (_command, *_examples) in _commands.items():
        _register(_name, _heading, _command, *_examples)
