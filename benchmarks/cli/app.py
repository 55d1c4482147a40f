"""`ramify bench`: run, grade, check and report batches. Everything heavy is imported where it is used."""

from __future__ import annotations

from agent.cli.help import new_app
from benchmarks.cli import check as cli_check
from benchmarks.cli import compare as cli_compare
from benchmarks.cli import grade as cli_grade
from benchmarks.cli import regrade as cli_regrade
from benchmarks.cli import report as cli_report
from benchmarks.cli import run as cli_run
from benchmarks.cli import synthesize as cli_synthesize

__all__ = ["app"]

app = new_app(
    help="Run, grade and report batches of instances.",
    no_args_is_help=True,
    add_completion=False,
)

for command in (
    cli_run.run,
    cli_grade.grade,
    cli_regrade.regrade,
    cli_check.check,
    cli_report.report,
    cli_report.export,
    cli_compare.compare,
    cli_compare.curve,
    cli_synthesize.synthesize,
):
    app.command()(command)
