"""`ramify shorten`: finds the unnecessary turns of solved runs."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.runs import Runs, last_run
from agent.counting import counted

if TYPE_CHECKING:
    from agent.analysis.minimize import Shortened
    from agent.run.run import Run


def shorten(
    runs: Runs = None,
    tries: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of shortened versions of a path to try.")
    ] = 20,
    paths: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of solved paths to shorten per run, shortest first.")
    ] = 1,
) -> None:
    """Find the unnecessary turns of a solved run. The other turns are repeated without them, and the tests are run.

    The result is recorded in the run, for `ramify export --format retro`. No model is asked."""
    from agent.errors import JournalError
    from agent.run.paths import runs_in
    from agent.run.run import Run
    from sandboxes import SnapshotMissing

    for path in runs_in(runs or [last_run()]):
        try:
            with Run.open(path) as run:
                lines = _shortened(run, tries, paths) if run.tree.solved else ["no state is solved"]
        except SnapshotMissing:
            lines = ["unchanged: its base state was removed"]
        except JournalError as error:  # another process has the run open, or it cannot be read
            lines = [f"unchanged: {error}"]
        sys.stdout.write("".join(f"{path}: {line}\n" for line in lines))


def _shortened(run: Run, tries: int, paths: int) -> list[str]:
    from agent.analysis.minimize import NOTE, Bench, Shortened, shorten
    from agent.build.sandboxes import make_provider
    from agent.config import restore
    from agent.learning.export.sft import winners
    from agent.learning.export.turns import Turns
    from agent.run.events import Noted
    from agent.run.paths import store_of
    from agent.task import load_task

    assert run.started is not None
    settings, lines = restore(run.started.settings), list[str]()
    with closing(make_provider(settings, store_of(run.journal.directory))) as provider:
        bench = Bench.of(provider, load_task(run.started.task), run.tree.root, settings.sandbox.allow)
        for leaf in winners(run, Turns(run))[0][:paths]:
            recorded = run.note(leaf.id, NOTE)
            result = Shortened.from_json(recorded) if recorded else shorten(run.tree.path(leaf.id), bench.solves, tries)
            if result and not recorded:
                run.record(Noted(leaf.id, NOTE, asdict(result)))
            lines.append(_line(leaf.id, result))
    return lines


def _line(leaf: int, result: Shortened | None) -> str:
    if result is None:
        return f"unchanged: repeating its turns does not lead to the result of state {leaf}"
    tried = counted(result.tried, "try", "tries")
    return f"{len(result.turns)} of {counted(result.of, 'turn')} lead to the result of state {leaf} ({tried})"
