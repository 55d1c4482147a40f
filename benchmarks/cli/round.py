"""`ramify round`: one round of self-training: search, train, compare, and keep the better policy."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.help import HELP, example, new_app
from agent.cli.options import Config
from agent.errors import UsageError
from benchmarks.cli.options import say

__all__ = ["app"]

app = new_app(add_completion=False)


@app.command(context_settings=HELP, epilog=example("ramify round policies --tasks bugs/train --held-out bugs/held-out"))
def turn(
    registry: Annotated[Path, typer.Argument(metavar="DIR", help="The registry of policies; made if it is missing.")],
    tasks: Annotated[Path, typer.Option(metavar="SOURCE", help="Bugs to search and learn from.")],
    held_out: Annotated[Path, typer.Option(metavar="SOURCE", help="Held-out bugs to compare policies on: 20 or more.")],
    learn: Annotated[str, typer.Option(metavar="counts|model", help="What is learned from the trees.")] = "counts",
    max_tried: Annotated[int, typer.Option(metavar="N", min=1, help="The most states in a search.")] = 60,
    width: Annotated[int, typer.Option(metavar="N", min=1, help="How many edits of a state are ranked.")] = 200,
    workers: Annotated[int, typer.Option("-w", "--workers", metavar="N", min=1, help="Searches at the same time.")] = 1,
    part: Annotated[str, typer.Option("--slice", metavar="A:B", help="Only this part of each source.")] = "",
    easiest: Annotated[
        float,
        typer.Option(metavar="SHARE", min=0, max=1, help="Leave out tasks that are solved at this rate or higher."),
    ] = 0.9,
    max_steps: Annotated[int, typer.Option(metavar="N", min=1, help="The most steps of a training.")] = 2000,
    model: Annotated[
        str, typer.Option(metavar="DIR", help="Continue from this checkpoint. Default: a model made from scratch.")
    ] = "",
    cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU to train and serve.")] = False,
    train_python: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Interpreter with the packages for training.")
    ] = None,
    serve_python: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Interpreter with vLLM. Default: RAMIFY_VLLM's, or `python3`.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535)] = 8000,
    config: Config = None,
) -> None:
    """Search SOURCE with the current policy, train on the trees, compare on held-out bugs, and keep the better one."""
    from agent.cli.serve import vllm_python
    from agent.learning.training import Wanted, require_checkpoint
    from benchmarks.self_training.playing import Conditions
    from benchmarks.self_training.turning import Learning, Round
    from benchmarks.self_training.turning import turn as go

    if learn not in ("counts", "model"):
        raise UsageError(f"--learn {learn!r}: give counts or model")
    if model and learn != "model":
        raise UsageError(f"--model {model} is for --learn model")
    require_checkpoint(model)
    rate = 1e-4 if model else 1e-3
    wanted = Wanted(model, max_steps=max_steps, epochs=1000.0, rate=rate, prompt_loss=not model, cpu=cpu)
    server = str(serve_python or vllm_python())
    learning = Learning("counts" if learn == "counts" else "model", wanted, train_python, server, port, cpu)
    conditions = Conditions(max_tried, width, workers, part, tuple(config or ()))
    policy = go(Round(tasks, held_out, learning, conditions, easiest), registry, say)
    sys.stdout.write(json.dumps(asdict(policy)) + "\n")
