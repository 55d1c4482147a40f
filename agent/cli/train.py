"""`ramify train`: trains a policy or a value model on recorded searches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent import counting
from agent.cli.help import example, new_app
from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.learning.training import Method


app = new_app(help="Train a policy on recorded searches.", no_args_is_help=True)

_HELP: dict[Method, str] = {
    "sft": "Imitate the answers of an export (formats sft, edit, revision, ...).",
    "dpo": "Prefer one answer to another (formats preference, edit-preference).",
    "kto": "Tell right answers from wrong ones (formats kto, edit-kto).",
    "reward": "Learn a reward from preferences (formats preference, edit-preference).",
    "grpo": "Follow the policy gradient of recorded trees (format grpo-tree).",
    "prm": "Learn how likely a state is to lead to a right solution, for --value prm (format verifier).",
}


@app.command(epilog=example("ramify train counts runs --out counts.json"))
def counts(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Directories of runs, or of batches.")],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="FILE", help="Where the counts go, for --model edit -c policy.counts=FILE."
        ),
    ],
) -> None:
    """Count which kinds of edits were right in recorded searches: the simplest policy, and the baseline to beat."""
    from contextlib import ExitStack

    from agent.policy.edit.counts import count_edits
    from agent.run.paths import runs_in
    from agent.run.run import Run

    with ExitStack() as held:
        edits = count_edits(held.enter_context(Run.read(path)) for path in runs_in(runs))
    if not edits.tried:
        raise UsageError("none of these runs tried an edit")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        edits.write(out)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written ({error.strerror}): name another file") from error
    sys.stdout.write(
        f"{edits.right} of {edits.tried} edits were right (from {counting.counted(edits.runs, 'run')}); {out}\n"
    )


def _command(method: Method) -> Callable[..., None]:
    def command(
        context: typer.Context,
        data: Annotated[list[Path], typer.Argument(metavar="DATA", help="Folders that ramify export wrote.")],
        out: Annotated[
            Path,
            typer.Option(
                "-o",
                "--out",
                metavar="DIR",
                help="Training directory; a training with the same settings is resumed there.",
            ),
        ],
        model: Annotated[
            str, typer.Option(metavar="DIR", help="A checkpoint. Default: a tiny one, made from scratch.")
        ] = "",
        lora: Annotated[
            int | None,
            typer.Option(
                metavar="RANK",
                min=0,
                help="Rank of the adapter to train; 0: none. Default: 16 for chat models if PEFT is installed, else 0.",
            ),
        ] = None,
        full: Annotated[bool, typer.Option("--full", help="Train all weights; the same as --lora 0.")] = False,
        epochs: Annotated[float, typer.Option(metavar="N", help="How many times to train on each row.")] = 1.0,
        max_steps: Annotated[
            int, typer.Option(metavar="N", help="Stop after this many steps; -1: train for all epochs.")
        ] = -1,
        batch: Annotated[int, typer.Option(metavar="N", min=1, help="Rows in a batch on each device.")] = 8,
        accumulate: Annotated[
            int, typer.Option(metavar="N", min=1, help="Batches per step; their gradients are accumulated.")
        ] = 1,
        rate: Annotated[float, typer.Option(metavar="X", help="The learning rate.")] = 1e-4,
        warmup_steps: Annotated[
            int, typer.Option(metavar="N", min=0, help="Steps in which the learning rate rises from 0.")
        ] = 0,
        max_length: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of tokens of a row.")] = 2048,
        beta: Annotated[float, typer.Option(metavar="X", help="Beta of DPO and KTO.")] = 0.1,
        prompt_loss: Annotated[bool, typer.Option("--prompt-loss", help="SFT: also train on the prompts.")] = False,
        group_by_length: Annotated[bool, typer.Option("--group-by-length", help="Group rows by length.")] = False,
        in_order: Annotated[
            bool, typer.Option("--in-order", help="Keep the order of the rows (see ramify export --easy-first).")
        ] = False,
        save_steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps between checkpoints.")] = 200,
        cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU, in float32.")] = False,
        width: Annotated[
            int, typer.Option(metavar="N", min=32, help="Width of a model made from scratch, a multiple of 32.")
        ] = 192,
        layers: Annotated[
            int, typer.Option(metavar="N", min=1, help="Number of layers of a model made from scratch.")
        ] = 4,
        vocabulary: Annotated[
            int, typer.Option(metavar="N", min=300, help="Vocabulary size of a model made from scratch.")
        ] = 2048,
        mix_policies: Annotated[bool, typer.Option("--mix-policies", help="Accept rows of several policies.")] = False,
        processes: Annotated[int, typer.Option(metavar="N", min=1, help="How many devices to use.")] = 1,
        python: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Interpreter with the packages for training.")
        ] = None,
        seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the training.")] = 0,
    ) -> None:
        from agent.learning import training

        if full and lora:
            raise UsageError(f"--full and --lora {lora}: --full trains all weights, --lora only an adapter; give one")
        if width % 32:
            raise UsageError(f"--width {width}: give a multiple of 32")
        tiny = {"width": width, "layers": layers, "vocabulary": vocabulary, "positions": 2 * max_length}
        params = context.params | {"lora": lora or 0, "tiny": tiny}
        settings = training.TrainingSettings(
            **{each.name: params[each.name] for each in fields(training.TrainingSettings) if each.name in params}
        )
        plan = training.plan(method, data, settings, mix_policies=mix_policies)
        if lora is None and not full:
            plan = training.with_adapter(plan, python)
        metrics = training.train(plan, out, python=python, processes=processes)
        facts = {key: metrics[key] for key in ("steps", "seconds", "parameters", "trained")}
        sys.stdout.write(json.dumps({"model": str(out / "model"), **facts}) + "\n")

    command.__doc__ = _HELP[method]
    return command


for _name in _HELP:
    app.command(_name, epilog=example(f"ramify train {_name} data --out trained"))(_command(_name))
