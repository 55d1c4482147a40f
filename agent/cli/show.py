"""`ramify show`: shows the tree of a run, why a state was reached, or the best patch."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.runs import LAST, RunDir
from agent.errors import JournalError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from agent.run.run import Run
    from agent.solver.result import Result


WIDE = 100_000
"""The width, in columns, of output that does not go to a terminal."""

Node = Annotated[int, typer.Argument(metavar="STATE", help="The number of a state, as `ramify show` prints it.")]


def show(
    run: RunDir = LAST,
    patch: Annotated[bool, typer.Option("--patch", help="Print the best patch instead.")] = False,
    why: Annotated[int | None, typer.Option(metavar="STATE", help="Explain what led to this state instead.")] = None,
    summaries: Annotated[bool, typer.Option("--summaries", help="Show a summary of each rollout instead.")] = False,
    html: Annotated[
        str, typer.Option(metavar="FILE", help="Write the tree as one page for a browser instead; - is stdout.")
    ] = "",
    graph: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the states as a graph instead: .graphml or node-link .json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --why: print one JSON object.")] = False,
) -> None:
    """Show the tree of a run. Each state has its number, value, tests and action; * marks the path to the best."""
    if as_json and why is None:
        raise UsageError("--json needs --why STATE; RUN/journal.jsonl holds the whole run, one JSON object per line")
    if patch + summaries + (why is not None) + bool(html) + (graph is not None) > 1:
        raise UsageError("give only one of --patch, --why STATE, --summaries, --html FILE and --graph FILE")
    if why is not None:
        _explain(run, why, as_json)
        return
    if html:
        _write_page(run, html)
        return
    with read_run(run) as opened:
        if patch:
            from agent.cli.interactive import print_patch

            print_patch(answer_of(opened).patch)
        elif summaries:
            _summarise(opened)
        elif graph is not None:
            from agent.analysis.report.graph import write_graph

            write_graph(opened, graph)
        else:
            _draw(opened)


def _explain(run: Path, node: int, as_json: bool) -> None:
    from agent.analysis.report.why import explain

    with read_run(run) as opened:
        explanation = explain(opened.journal.events(), node)
    if as_json:
        sys.stdout.write(json.dumps(asdict(explanation)) + "\n")
        return
    _console().print(explanation.as_text())


def _draw(run: Run) -> None:
    from agent.analysis.report.bracket import brackets
    from agent.analysis.report.tree import best_of, draw, facts
    from agent.evaluate.goal_tests import goals_of_run

    console = _console()
    if len(run.tree):
        console.print(draw(run.tree, best_of(run), goals_of_run(run)), markup=True)
    console.print(facts(run), markup=False)
    for block in brackets(run):
        console.print(block, markup=False)


def _write_page(run: Path, name: str) -> None:
    from agent.analysis.report.web import as_html
    from agent.files import write_atomically

    page = as_html(run)
    if name == "-":
        sys.stdout.buffer.write(page)
        return
    try:
        write_atomically(Path(name), page)
    except OSError as error:
        raise UsageError(f"--html {name} cannot be written: {error.strerror}") from error
    sys.stderr.write(f"{name}: {len(page) / 1e6:.1f} MB\n")


def _summarise(run: Run) -> None:
    from agent.analysis.report.summaries import draw

    console = _console()
    for block in draw(run):
        console.print(block, markup=False)


def _console() -> Console:
    """Return a console that does not cut off lines if the output is a pipe."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)


def read_run(directory: Path) -> Run:
    """Open the run in a directory for reading. Raises JournalError or UsageError if there is none."""
    from agent.run.paths import journal_of
    from agent.run.run import Run

    return Run.read(journal_of(directory).parent)


def answer_of(run: Run) -> Result:
    """Return the result of the last session of a run. Raises JournalError if it has not ended."""
    from agent.solver.outcome import result_of

    if run.ended is None:
        raise JournalError(
            f"{run.journal.directory} has not ended; resume it first: ramify resume {run.journal.directory}"
        )
    return result_of(run, run.ended)
