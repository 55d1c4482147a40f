"""`ramify`: declares all commands. Slow imports happen inside the commands."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

from agent.cli import (
    apply,
    check_patch,
    clean,
    config,
    diagnose,
    doctor,
    export,
    fix,
    history,
    memory,
    recipes,
    reflect,
    replay,
    resume,
    runs,
    serve,
    shorten,
    show,
    solve,
    steer,
    train,
)
from agent.cli.help import EXIT_CODES, example, new_app
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


ELSEWHERE = {"bench": "benchmarks.cli.app", "serve-report": "benchmarks.cli.site", "round": "benchmarks.cli.round"}
"""The commands of another package, each with the module whose `app` runs it."""


def _delegate(context: typer.Context) -> None:
    """Run a command of `benchmarks`. It is imported by name, because this package must not depend on it."""
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
        "solve": (solve.solve, "ramify solve issue.md --test 'python3 -m pytest -q' --apply"),
        "fix": (fix.fix, "ramify fix --apply", "ramify fix tests/test_a.py::test_b"),
        "resume": (resume.resume, "ramify resume --max-seconds 7200", "ramify resume runs/words"),
        "apply": (apply.apply, "ramify apply", "ramify apply runs/words"),
        "check-patch": (check_patch.check_patch, "ramify check-patch fix.patch"),
    },
    "Look": {
        "runs": (runs.runs, "ramify runs", "ramify runs --all --json", "ramify runs BATCH"),
        "show": (show.show, "ramify show", "ramify show runs/words --html tree.html"),
        "log": (history.log, "ramify log runs/words --graph"),
        "diagnose": (diagnose.diagnose, "ramify diagnose runs/words"),
        "replay": (replay.replay, "ramify replay runs/words --search mcts"),
        "serve-report": ("Show a batch or a folder of runs in a browser.", "ramify serve-report runs"),
    },
    "Steer": {
        "fork": (steer.fork, "ramify fork runs/words 3 --hint 'look at the parser'"),
        "prune": (steer.prune, "ramify prune runs/words 3"),
        "pin": (steer.pin, "ramify pin runs/words 3"),
        "promote": (history.promote, "ramify promote runs/words 3 --branch fix-words"),
    },
    "Batches": {"bench": ("Run, grade and compare batches of instances.", "ramify bench run tasks --out runs/tasks")},
    "Training": {
        "export": (export.export, "ramify export runs/words --format sft --out data", "ramify export --list"),
        "reflect": (reflect.reflect, "ramify reflect runs/words"),
        "shorten": (shorten.shorten, "ramify shorten runs/words"),
        "train": (train.app, ""),
        "round": (
            "Search, train, compare, and keep the better policy.",
            "ramify round policies --tasks bugs/train --held-out bugs/held-out",
        ),
        "serve": (serve.serve, "ramify serve trained/model --lora mine=trained/adapter"),
        "memory": (memory.app, ""),
    },
    "Set-up": {
        "recipes": (recipes.recipes, "ramify recipes", "ramify recipes mcgs"),
        "doctor": (
            doctor.doctor,
            "ramify doctor",
            "ramify doctor --model openai/NAME --base-url http://localhost:8000/v1",
        ),
        "config": (config.app, ""),
        "clean": (clean.clean, "ramify clean --dry-run"),
    },
}
"""The commands, by their heading in the help. Each has a function, a group, or (for a command of another package) its
help text, followed by examples."""


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
