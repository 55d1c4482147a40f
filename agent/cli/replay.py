"""`ramify replay`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.runs import RunDir

if TYPE_CHECKING:
    from agent.build.replay import Replayed

__all__ = ["as_text", "replay"]


def replay(
    run: RunDir,
    search: Annotated[
        str | None, typer.Option(metavar="NAME", help="Use another search, with the same recorded answers.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("-c", "--config", metavar="FILE|KEY=VALUE", help="Change a setting of the run.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask the model where the run has no recorded answer.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="NEW", help="Directory of the new run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Repeat the search of RUN from its journal, without a model, a key or the network, and say whether the result is
    the same.

    Exit code 0: identical, or, with settings changed, solved; 1: not."""
    from agent.build.replay import replay
    from agent.cli.interactive import sit
    from agent.config import restore, split
    from agent.run.paths import journal_of, new_run_dir

    directory = new_run_dir(out, f"replay-of-{journal_of(run).parent.name}")
    files, overrides = split(config or ())
    flags = {} if search is None else {"search.name": search}
    change = partial(restore, files=files, overrides=overrides, flags=flags)
    done, received = sit(partial(replay, run, directory, change, live=live))
    sys.stdout.write(json.dumps(_as_json(done)) + "\n" if as_json else as_text(done))
    raise typer.Exit(0 if _good(done) else 128 + received if received else 1)


def _good(done: Replayed) -> bool:
    return done.result.status == "solved" if done.difference is None else not done.difference


def _as_json(done: Replayed) -> dict[str, Any]:
    """The replay as JSON; `identical` is null if settings were changed."""
    facts = {name: value for name, value in asdict(done).items() if name != "result"}
    identical = None if done.difference is None else not done.difference
    run_dir, status = str(done.result.run_dir), done.result.status
    return {"identical": identical, **facts, "status": status, "nodes": done.result.nodes, "run_dir": run_dir}


def as_text(done: Replayed) -> str:
    """The replay as text."""
    result = done.result
    if done.difference is None:
        said = f"{result.status}: {result.nodes} states; {result.stop.value}"
    else:
        said = f"differs: {done.difference}" if done.difference else f"identical: {result.nodes} states"
    answers = f"answers  {done.reused} of {done.calls} recorded ones used, {done.missing} missing"
    return f"{said}\n{answers}\nrun      {result.run_dir}\n"
