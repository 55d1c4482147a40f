"""Serving: the vLLM server that tree search wants, as a command line and as a process that is waited for.

vLLM lives in an environment of its own and is spoken to over HTTP. Nothing of it is imported.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from agent.errors import RamifyError, UsageError
from agent.learning.managed_process import gone_after, leaving_by_signals

__all__ = ["Server", "ServerFailed", "command", "environment", "running"]

LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Those that vLLM takes."""
LEAST_BATCHED = 2048
"""Tokens of a step of the server, of all requests together."""
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""A server of our own is behind no proxy, whatever the environment names."""


class ServerFailed(RamifyError):
    """The server ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Server:
    """What is served, and how."""

    model: str
    """A folder with a checkpoint, or a name that the server's hub knows."""
    name: str = ""
    """As it is asked for; empty: the last part of `model`."""
    adapters: Mapping[str, Path] | None = None
    """LoRA adapters by the names that they are asked for by. One folder a version: the prefix cache goes by it."""
    lora_rank: int = 16
    host: str = "127.0.0.1"
    port: int = 8000
    max_model_len: int | None = None
    tool_parser: str = "hermes"
    seed: int = 0
    cpu: bool = False
    """Small, in float32, and without compiling: for tests and tiny models."""
    extra: tuple[str, ...] = ()
    """Further arguments, as they are."""

    @property
    def root(self) -> str:
        """Where it answers."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def served(self) -> str:
        """The model's name for requests."""
        return self.name or Path(self.model).name or Path(self.model).resolve().name


def command(server: Server, python: str) -> list[str]:
    """The command line, with the interpreter that has vLLM.

    Raises:
        UsageError: the model is an adapter; an adapter is no folder with one, is called like the model, or has a
            higher rank than is taken; or vLLM takes no such rank.
    """
    _require_whole(Path(server.model))
    line = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", server.model]
    line += ["--served-model-name", server.served, "--host", server.host, "--port", str(server.port)]
    line += ["--seed", str(server.seed), "--enable-prefix-caching", "--enable-prompt-tokens-details"]
    line += ["--enable-auto-tool-choice", "--tool-call-parser", server.tool_parser]
    line += ["--generation-config", "vllm", "--logprobs-mode", "processed_logprobs"]
    if server.max_model_len:
        line += ["--max-model-len", str(server.max_model_len)]
    if server.max_model_len and server.cpu:  # vLLM 0.32 on a CPU dies of a prompt in parts whose request has a seed
        line += ["--max-num-batched-tokens", str(max(server.max_model_len, LEAST_BATCHED))]
    if server.adapters is not None:
        line += _adapters(server)
    if server.cpu:
        line += ["--dtype", "float32", "--enforce-eager", "--block-size", "32"]
    return [*line, *server.extra]


def environment(server: Server) -> dict[str, str]:
    """What its environment has on top of this process's."""
    found = {"VLLM_NO_USAGE_STATS": "1"}
    if server.adapters is not None:
        found["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    if server.cpu:
        found |= {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    if Path(server.model).is_dir():
        found["HF_HUB_OFFLINE"] = "1"
    return found


@contextmanager
def running(
    server: Server, python: str, *, ready_s: float = 600, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The server's process, up for the block, and gone after it with all that it started, also where SIGTERM or SIGHUP
    ends this one. What it says goes to `log`, else to stderr.

    Raises:
        UsageError: as `command`, or something else listens on its port, or `python` cannot be run.
        ServerFailed: it ends, or is not up after `ready_s` seconds.
    """
    line = command(server, python)
    _require_free(server)
    with leaving_by_signals():
        process = _begun(line, os.environ | environment(server), log)
        with gone_after(process):
            _wait(process, server.root, ready_s, log)
            yield process


def _require_free(server: Server) -> None:
    """Otherwise the other one would be taken for this one."""
    with suppress(OSError), socket.create_connection((server.host, server.port), 5):
        raise UsageError(f"something listens on {server.host}:{server.port} already: end it, or give another --port")


def _begun(line: Sequence[str], env: Mapping[str, str], log: Path | None) -> subprocess.Popen[bytes]:
    output = log.open("wb") if log else None
    try:
        return subprocess.Popen(line, env=env, stdout=output or 2, stderr=output or 2, start_new_session=True)
    except OSError as error:
        raise UsageError(f"{line[0]} cannot be run ({error.strerror}): name an interpreter with vLLM") from error
    finally:
        if output:
            output.close()


def _wait(process: subprocess.Popen[bytes], root: str, ready_s: float, log: Path | None) -> None:
    told, until = f" in {log}" if log else "", time.monotonic() + ready_s
    while time.monotonic() < until:
        if process.poll() is not None:
            raise ServerFailed(f"the server ended with {process.returncode} before it was up: see what it said{told}")
        if _healthy(root):
            return
        time.sleep(0.5)
    raise ServerFailed(f"{root} does not answer after {ready_s:g} s: give --ready-s more, or see what it said{told}")


def _healthy(root: str) -> bool:
    try:
        with _DIRECTLY.open(f"{root}/health", timeout=5):
            return True
    except (OSError, HTTPException):
        return False


def _require_whole(model: Path) -> None:
    if (model / "adapter_config.json").is_file() and not (model / "config.json").exists():
        raise UsageError(
            f"{model} is an adapter: serve the checkpoint that it was trained on, with --lora NAME={model}"
        )


def _adapters(server: Server) -> Sequence[str]:
    adapters, rank = server.adapters or {}, server.lora_rank
    if rank not in LORA_RANKS:
        raise UsageError(f"--lora-rank {rank}: vLLM takes {', '.join(map(str, LORA_RANKS))}")
    if server.served in adapters:
        raise UsageError(f"--lora {server.served}=...: the model itself is called so; give --name, or another name")
    for name, path in adapters.items():
        if (needed := _rank_of(name, path)) > rank:
            more = next((each for each in LORA_RANKS if each >= needed), needed)
            raise UsageError(f"--lora {name}={path}: its rank is {needed}; give --lora-rank {more}")
    modules = [f"{name}={path.absolute()}" for name, path in adapters.items()]
    return ["--enable-lora", "--max-lora-rank", str(rank), *(["--lora-modules", *modules] if modules else [])]


def _rank_of(name: str, path: Path) -> int:
    """0: it does not say. Raises UsageError where no adapter is there."""
    try:
        return int(json.loads((path / "adapter_config.json").read_bytes()).get("r", 0))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"--lora {name}={path}: no adapter_config.json is there") from error
