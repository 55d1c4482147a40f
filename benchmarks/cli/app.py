"""`ramify bench`: run, grade, check and report batches. Everything heavy is imported where it is used."""

from __future__ import annotations

from collections.abc import Callable

from agent.cli.help import example, new_app
from benchmarks.cli import check as cli_check
from benchmarks.cli import compare as cli_compare
from benchmarks.cli import grade as cli_grade
from benchmarks.cli import keep as cli_keep
from benchmarks.cli import regrade as cli_regrade
from benchmarks.cli import report as cli_report
from benchmarks.cli import run as cli_run
from benchmarks.cli import synthesize as cli_synthesize

app = new_app(help="Run, grade and report batches of instances.", no_args_is_help=True, add_completion=False)

COMMANDS: dict[Callable[..., None], str] = {
    cli_run.run: "run tasks --model mutate --workers 2 --out runs/tasks",
    cli_grade.grade: "grade runs/tasks",
    cli_regrade.regrade: "regrade runs/tasks",
    cli_check.check: "check tasks",
    cli_report.report: "report runs/tasks",
    cli_report.export: "export runs/tasks --out dataset",
    cli_compare.compare: "compare runs/one runs/other",
    cli_compare.curve: "curve runs/one runs/other --out curve.csv",
    cli_keep.keep: "keep skills runs/without runs/with --memory notes",
    cli_synthesize.synthesize: "synthesize repository --out bugs",
}
"""The commands, each with an example of its arguments."""

for command, arguments in COMMANDS.items():
    app.command(epilog=example(f"ramify bench {arguments}"))(command)
