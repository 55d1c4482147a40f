"""`ramify replay`: repeats a search from its journal."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.options import require
from agent.cli.runs import LAST, RunDir
from agent.counting import counted

if TYPE_CHECKING:
    from agent.build.replay import Replayed


def replay(
    run: RunDir = LAST,
    search: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use another search, with the same recorded answers.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("-c", "--config", metavar="FILE|KEY=VALUE", help="Change a setting of the run.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the model if the run has no recorded answer.")] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="NEW", help="Directory of the new run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Repeat the search of a run from its journal. It needs no model, key or network, and reports whether the result is
    the same.

    Exit code 0 if the result is identical or, with changed settings, if the issue is solved; otherwise 1."""
    from agent.build.replay import replay
    from agent.cli.interactive import with_signals
    from agent.config import restore, split
    from agent.run.paths import journal_of, new_run_dir

    if search is not None:
        require("search", search)
    directory = new_run_dir(out, f"replay-of-{journal_of(run).parent.name}")
    files, overrides = split(config or ())
    flags = {} if search is None else {"search.name": search}
    change = partial(restore, files=files, overrides=overrides, flags=flags)
    replayed, received = with_signals(partial(replay, run, directory, change, live=live))
    sys.stdout.write(json.dumps(_as_json(replayed)) + "\n" if as_json else as_text(replayed))
    raise typer.Exit(0 if _good(replayed) else 128 + received if received else 1)


def _good(replayed: Replayed) -> bool:
    return replayed.result.status == "solved" if replayed.difference is None else not replayed.difference


def _as_json(replayed: Replayed) -> dict[str, Any]:
    """Return the replay as JSON; `identical` is null if settings were changed."""
    facts = {name: value for name, value in asdict(replayed).items() if name != "result"}
    identical = None if replayed.difference is None else not replayed.difference
    run_dir, status = str(replayed.result.run_dir), replayed.result.status
    return {"identical": identical, **facts, "status": status, "nodes": replayed.result.nodes, "run_dir": run_dir}


def as_text(replayed: Replayed) -> str:
    """Return the replay as text."""
    result = replayed.result
    if replayed.difference is None:
        outcome = f"{result.status}: {counted(result.nodes, 'state')}; {result.stop.value}"
    else:
        states = counted(result.nodes, "state")
        outcome = f"differs: {replayed.difference}" if replayed.difference else f"identical: {states}"
    answers = f"answers  {replayed.reused} of {replayed.calls} recorded ones used, {replayed.missing} missing"
    return f"{outcome}\n{answers}\nrun      {result.run_dir}\n"
