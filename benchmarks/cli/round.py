"""`ramify round`: one round of self-training: search, train, compare, and keep the better policy."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.help import HELP, example, new_app
from agent.cli.options import Config
from agent.errors import UsageError
from benchmarks.cli.options import say

if TYPE_CHECKING:
    from benchmarks.self_training.turning import Learning


app = new_app(add_completion=False)


@app.command(context_settings=HELP, epilog=example("ramify round policies --tasks bugs/train --held-out bugs/held-out"))
def turn(
    registry: Annotated[Path, typer.Argument(metavar="DIR", help="The registry of policies; made if it is missing.")],
    tasks: Annotated[Path, typer.Option(metavar="SOURCE", help="Bugs to search and learn from.")],
    held_out: Annotated[Path, typer.Option(metavar="SOURCE", help="Held-out bugs to compare policies on: 20 or more.")],
    policy: Annotated[
        Path | None,
        typer.Option(metavar="MODEL_DIR", help="A chat model to train further. Default: the policy `edit`."),
    ] = None,
    learn: Annotated[
        str,
        typer.Option(
            metavar="counts|model|sft|dpo|kto|grpo",
            help="What to learn: counts (the default) or model for `edit`, else sft (the default), dpo, kto or grpo.",
        ),
    ] = "",
    rollouts: Annotated[
        int, typer.Option(metavar="N", min=2, help="With --policy: number of rollouts on each training task.")
    ] = 4,
    max_tried: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of states in a search.")] = 60,
    width: Annotated[int, typer.Option(metavar="N", min=1, help="How many edits of a state are ranked.")] = 200,
    workers: Annotated[int, typer.Option("-w", "--workers", metavar="N", min=1, help="Searches at the same time.")] = 1,
    part: Annotated[str, typer.Option("--slice", metavar="A:B", help="Only this part of each source.")] = "",
    easiest: Annotated[
        float,
        typer.Option(metavar="SHARE", min=0, max=1, help="Leave out tasks that are solved at this rate or higher."),
    ] = 0.9,
    max_steps: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum number of training steps. Default: 2000; for a chat model one epoch."
        ),
    ] = None,
    max_length: Annotated[
        int,
        typer.Option(
            metavar="TOKENS", min=1, help="With --policy: maximum tokens of a row; longer rows are cut or left out."
        ),
    ] = 16384,
    model: Annotated[
        str, typer.Option(metavar="DIR", help="Continue from this checkpoint. Default: a model made from scratch.")
    ] = "",
    easy_first: Annotated[
        bool,
        typer.Option("--easy-first", help="With --policy: train on tasks in order, those solved most often first."),
    ] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU to train and serve.")] = False,
    train_python: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Interpreter with the packages for training.")
    ] = None,
    serve_python: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Interpreter with vLLM. Default: that of the environment RAMIFY_VLLM, else `python3`."
        ),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="Port of the vLLM servers.")] = 8000,
    config: Config = None,
) -> None:
    """Search SOURCE with the current policy, train on the trees, compare on held-out bugs, and keep the better one."""
    from agent.cli.serve import vllm_python
    from agent.learning.training import require_checkpoint
    from benchmarks.self_training.playing import Conditions
    from benchmarks.self_training.turning import Round
    from benchmarks.self_training.turning import turn as go

    server = str(serve_python or vllm_python())
    if policy:
        learning = _chat(learn or "sft", model, max_steps, max_length, cpu, easy_first)
    else:
        learning = _edit(learn or "counts", model, max_steps or 2000, cpu)
    require_checkpoint(str(policy or model))
    learning = replace(learning, train_python=train_python, serve_python=server, port=port, cpu=cpu)
    conditions = Conditions(max_tried, width, workers, part, tuple(config or ()), rollouts if policy else 0)
    new = go(Round(tasks, held_out, learning, conditions, easiest, policy), registry, say)
    sys.stdout.write(json.dumps(asdict(new)) + "\n")


def _edit(learn: str, model: str, max_steps: int, cpu: bool) -> Learning:
    from agent.learning.training import TrainingSettings
    from benchmarks.self_training.turning import Learning

    if learn not in ("counts", "model"):
        raise UsageError(f"--learn {learn!r}: give counts or model, or a chat model with --policy MODEL_DIR")
    if model and learn != "model":
        raise UsageError(f"--model {model} works only with --learn model: add that, or leave --model out")
    rate = 1e-4 if model else 1e-3
    settings = TrainingSettings(model, max_steps=max_steps, epochs=1000.0, rate=rate, prompt_loss=not model, cpu=cpu)
    return Learning("counts" if learn == "counts" else "model", settings)


def _chat(learn: str, model: str, max_steps: int | None, max_length: int, cpu: bool, easy_first: bool) -> Learning:
    from agent.learning.training import TrainingSettings
    from benchmarks.self_training.turning import ROWS, Learning

    method = next((name for name in ROWS if name == learn), None)
    if method is None:
        raise UsageError(f"--learn {learn!r}: with --policy give one of {', '.join(ROWS)}")
    if model:
        raise UsageError(f"--model {model} is for the policy `edit`; --policy names the chat model")
    rate = 1e-5 if method == "sft" else 1e-6
    settings = TrainingSettings(
        max_steps=max_steps or -1, batch=2, accumulate=4, rate=rate, max_length=max_length, cpu=cpu
    )
    return Learning("chat", replace(settings, in_order=easy_first), method=method)
