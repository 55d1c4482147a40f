"""`ramify reflect`: has a model mark the first mistaken turn of failed attempts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.options import Interface
from agent.cli.runs import Runs, last_run

if TYPE_CHECKING:
    from agent.models import Model
    from agent.run.run import Run


def reflect(
    runs: Runs = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The model to ask. Default: the model of the run.")
    ] = None,
    config: Interface = None,
) -> None:
    """Have a model mark the first mistaken turn of failed attempts. The model also says how to undo the mistake.

    The answers are recorded in the run, for `ramify export --format revision`. No attempt is asked about twice."""
    from agent.config import load, restore, split
    from agent.errors import UsageError
    from agent.models import registry
    from agent.run.paths import runs_in
    from agent.run.run import Run

    for path in runs_in(runs or [last_run()]):
        with Run.open(path) as run:
            assert run.started is not None
            settings = restore(run.started.settings)
            name, client = model or settings.primary_model, load(*split(config)).model if config else settings.model
            if name is None:
                raise UsageError(f"{path}: this run used no model; name one with --model")
            with closing(registry.make(name, **client.of_client())) as asked:
                for line in _marked(run, asked):
                    sys.stdout.write(f"{path}: {line}\n")


def _marked(run: Run, model: Model) -> Iterator[str]:
    from agent.budget import Budget
    from agent.engine.model_calls import ModelGateway
    from agent.engine.recorder import Recorder
    from agent.learning.export.first_error import NOTE, FirstError, ask_for
    from agent.learning.export.revision import Revision, ways
    from agent.learning.export.sft import winners
    from agent.learning.export.turns import Turns
    from agent.models.answers import Abstained
    from agent.run.action_log import task_of
    from agent.run.events import Noted

    turns, form = Turns(run), Revision()
    gateway = ModelGateway(Recorder(run, Budget()))
    leaves, _ = winners(run, turns)
    worse = form.worse(run, leaves[0])[: form.pairs] if leaves else []
    if not worse:
        yield "no failed attempt to compare with a solved one"
    for bad in worse:
        both = ways(run, turns, leaves[0], bad)
        error = FirstError.of(run, both.fork.id, bad.id)
        if error is None and both.wrong:
            ask = gateway.at(bad.id, "reflection")
            try:
                error = ask_for(ask, model, task_of(run).statement, both.fork.id, both.wrong, both.right)
            except Abstained as why:
                yield f"state {bad.id}: {why}"
                continue
            run.record(Noted(bad.id, NOTE, asdict(error)))
        if error is not None:
            place = f"turn {error.turn + 1} of {len(both.wrong)}"
            yield f"state {bad.id}: {place} is the first wrong one: {error.reflection}"
