"""`ramify serve`: serves a model with vLLM."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from agent.errors import UsageError


def serve(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A folder with a checkpoint or an adapter, or a name on Hugging Face."),
    ],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the model in openai/NAME. Default: the folder's name.")
    ] = "",
    lora: Annotated[
        list[str] | None, typer.Option(metavar="NAME=DIR", help="A LoRA adapter, served as openai/NAME; repeatable.")
    ] = None,
    lora_rank: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Maximum rank of adapters. If given without --lora, adapters can be loaded later."
        ),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="Port to listen on.")] = 8000,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on. The server requires no API key.")
    ] = "127.0.0.1",
    max_model_len: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of tokens of a prompt and its answer.")
    ] = None,
    tool_parser: Annotated[str, typer.Option(metavar="NAME", help="vLLM's parser of tool calls.")] = "hermes",
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the server.")] = 0,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use the CPU, for tiny models.")] = False,
    extra: Annotated[
        list[str] | None, typer.Option("--extra", metavar="ARG", help="Passed on to vLLM unchanged; repeatable.")
    ] = None,
    ready_s: Annotated[float, typer.Option(metavar="N", help="Seconds to wait until the server is ready.")] = 600,
    python: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Interpreter with vLLM. Default: that of the environment RAMIFY_VLLM, else `python3`."
        ),
    ] = None,
    printed: Annotated[bool, typer.Option("--print", help="Print the command and do not run it.")] = False,
) -> None:
    """Serve a model with vLLM, set up for tree search. The server has a prefix cache, tools and log-probabilities;
    Ctrl-C ends it."""
    from agent.learning import serving

    adapters, asked_for = _adapters(lora or (), lora_rank), ""
    if checkpoint := serving.checkpoint_of(model):
        asked_for = name or Path(model).resolve().name
        adapters, model, name = {**(adapters or {}), asked_for: Path(model)}, checkpoint, ""
    rank = lora_rank or serving.rank_for(adapters or {})
    server = serving.Server(
        model, name, adapters, rank, host, port, max_model_len, tool_parser, seed, cpu, tuple(extra or ())
    )
    interpreter = str(python or vllm_python())
    if printed:
        env = [f"{key}={value}" for key, value in serving.environment(server).items()]
        sys.stdout.write(shlex.join([*env, *serving.command(server, interpreter)]) + "\n")
        return
    with serving.running(server, interpreter, ready_s=ready_s) as process, suppress(KeyboardInterrupt):
        sys.stderr.write(f"up: --model openai/{asked_for or server.served} -c model.base_url={server.root}/v1\n")
        raise serving.ServerFailed(f"the server ended with exit code {process.wait()}; its output says why")


def _adapters(options: Sequence[str], rank: int | None) -> dict[str, Path] | None:
    """Return the adapters by name. None: the server loads no adapters, now or later."""
    adapters: dict[str, Path] = {}
    for text in options:
        name, between, place = text.partition("=")
        if not (name and between and place):
            raise UsageError(f"--lora {text!r}: write NAME=DIR")
        if name in adapters:
            raise UsageError(f"--lora {text!r}: another adapter has the name {name}; choose another name")
        adapters[name] = Path(place)
    return adapters if adapters or rank else None


def vllm_python() -> Path:
    """Return the Python of the environment that RAMIFY_VLLM names, or `python3`."""
    environment = os.environ.get("RAMIFY_VLLM")
    return Path(environment) / "bin" / "python" if environment else Path("python3")
