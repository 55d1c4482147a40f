"""The vLLM server with the options that tree search needs, as a command line and as a running process.

vLLM runs in its own environment and is reached over HTTP. Ramify imports nothing from it.
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
from typing import Any

from agent.errors import RamifyError, UsageError
from agent.learning.managed_process import gone_after, leaving_by_signals

LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM accepts."""
LEAST_BATCHED = 2048
"""The smallest `--max-num-batched-tokens` that Ramify sets: tokens in one step of the server, over all requests."""
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens URLs without a proxy: the server is never behind one, even if the environment names one."""


class ServerFailed(RamifyError):
    """The server ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Server:
    """What to serve, and how."""

    model: str
    """A checkpoint folder, or a name on the hub."""
    name: str = ""
    """The model's name in requests; empty: the last part of `model`."""
    adapters: Mapping[str, Path] | None = None
    """LoRA adapters by their names in requests. Each version needs a folder of its own: the prefix cache keys on it."""
    lora_rank: int = 16
    host: str = "127.0.0.1"
    port: int = 8000
    max_model_len: int | None = None
    tool_parser: str = "hermes"
    seed: int = 0
    cpu: bool = False
    """Serve on the CPU in float32, without compiling: for tests and tiny models."""
    extra: tuple[str, ...] = ()
    """Further arguments, passed on unchanged."""

    @property
    def root(self) -> str:
        """The server's base URL."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def served(self) -> str:
        """The model's name in requests."""
        return self.name or Path(self.model).name or Path(self.model).resolve().name


def command(server: Server, python: str) -> list[str]:
    """The command line that starts the server; `python` is an interpreter with vLLM.

    Raises:
        UsageError: the model is itself an adapter; an adapter's folder holds no adapter, it has the same name as the
            model, or its rank is above `lora_rank`; or vLLM does not accept `lora_rank`.
    """
    _refuse_adapter(Path(server.model))
    line = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", server.model]
    line += ["--served-model-name", server.served, "--host", server.host, "--port", str(server.port)]
    line += ["--seed", str(server.seed), "--enable-prefix-caching", "--enable-prompt-tokens-details"]
    line += ["--enable-auto-tool-choice", "--tool-call-parser", server.tool_parser]
    line += ["--generation-config", "vllm", "--logprobs-mode", "processed_logprobs"]
    if server.max_model_len:
        line += ["--max-model-len", str(server.max_model_len)]
    if server.max_model_len and server.cpu:  # vLLM 0.32 on a CPU crashes when a seeded prompt is chunked
        line += ["--max-num-batched-tokens", str(max(server.max_model_len, LEAST_BATCHED))]
    if server.adapters is not None:
        line += _adapters(server)
    if server.cpu:
        line += ["--dtype", "float32", "--enforce-eager", "--block-size", "32"]
    return [*line, *server.extra]


def environment(server: Server) -> dict[str, str]:
    """The variables to set for the server, on top of this process's environment."""
    variables = {"VLLM_NO_USAGE_STATS": "1"}
    if server.adapters is not None:
        variables["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] = "1"
    if server.cpu:
        variables |= {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    if Path(server.model).is_dir():
        variables["HF_HUB_OFFLINE"] = "1"
    return variables


@contextmanager
def running(
    server: Server, python: str, *, ready_s: float = 600, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server while the block runs, then end it and every process that it started, even if SIGTERM or SIGHUP
    ends this process. The server's output goes to `log`, or to stderr if `log` is None.

    Raises:
        UsageError: as `command`; or the port is in use, or `python` cannot be run.
        ServerFailed: the server ends, or does not answer within `ready_s` seconds.
    """
    line = command(server, python)
    _require_free(server)
    with leaving_by_signals():
        process = _start(line, os.environ | environment(server), log)
        with gone_after(process):
            _wait(process, server.root, ready_s, log)
            yield process


def _require_free(server: Server) -> None:
    """Raise UsageError if the port is in use: whatever answers there would be mistaken for this server."""
    with suppress(OSError), socket.create_connection((server.host, server.port), 5):
        raise UsageError(f"something already listens on {server.host}:{server.port}: stop it, or give another --port")


def _start(line: Sequence[str], env: Mapping[str, str], log: Path | None) -> subprocess.Popen[bytes]:
    output = log.open("wb") if log else None
    try:
        return subprocess.Popen(line, env=env, stdout=output or 2, stderr=output or 2, start_new_session=True)
    except OSError as error:
        raise UsageError(f"{line[0]} cannot be run ({error.strerror}): name a Python with vLLM installed") from error
    finally:
        if output:
            output.close()


def _wait(process: subprocess.Popen[bytes], root: str, ready_s: float, log: Path | None) -> None:
    output, deadline = f"its output{f' in {log}' if log else ''}", time.monotonic() + ready_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerFailed(f"the server ended with {process.returncode} before it was ready: see {output}")
        if _healthy(root):
            return
        time.sleep(0.5)
    raise ServerFailed(f"{root} does not answer after {ready_s:g} s: raise --ready-s, or see {output}")


def _healthy(root: str) -> bool:
    try:
        with _DIRECTLY.open(f"{root}/health", timeout=5):
            return True
    except (OSError, HTTPException):
        return False


def checkpoint_of(model: str) -> str:
    """The checkpoint that an adapter was trained on; empty if the model is not an adapter.

    Raises:
        UsageError: the adapter names no checkpoint that exists.
    """
    folder = Path(model)
    if not (folder / "adapter_config.json").is_file() or (folder / "config.json").exists():
        return ""
    base = str(_config(folder.name, folder).get("base_model_name_or_path") or "")
    if not (Path(base) / "config.json").is_file():
        raise UsageError(
            f"{model} is an adapter of {base or 'an unknown checkpoint'}, which does not exist: serve the checkpoint "
            f"it was trained on, with --lora NAME={model}"
        )
    return base


def rank_for(adapters: Mapping[str, Path]) -> int:
    """The lowest rank accepted by vLLM that is high enough for all these adapters; at least 16."""
    needed = max([16, *(_rank_of(name, path) for name, path in adapters.items())])
    return next((allowed for allowed in LORA_RANKS if allowed >= needed), needed)


def _refuse_adapter(model: Path) -> None:
    if (model / "adapter_config.json").is_file() and not (model / "config.json").exists():
        raise UsageError(f"{model} is an adapter: serve the checkpoint it was trained on, with --lora NAME={model}")


def _adapters(server: Server) -> Sequence[str]:
    adapters, rank = server.adapters or {}, server.lora_rank
    if rank not in LORA_RANKS:
        raise UsageError(f"--lora-rank {rank}: vLLM accepts {', '.join(map(str, LORA_RANKS))}")
    if server.served in adapters:
        raise UsageError(
            f"--lora {server.served}=...: the model itself has that name; give --name, or rename the adapter"
        )
    for name, path in adapters.items():
        if (needed := _rank_of(name, path)) > rank:
            enough = next((allowed for allowed in LORA_RANKS if allowed >= needed), needed)
            raise UsageError(f"--lora {name}={path}: its rank is {needed}; give --lora-rank {enough}")
    modules = [f"{name}={path.absolute()}" for name, path in adapters.items()]
    return ["--enable-lora", "--max-lora-rank", str(rank), *(["--lora-modules", *modules] if modules else [])]


def _rank_of(name: str, path: Path) -> int:
    """The adapter's rank; 0 if its configuration names none. Raises UsageError if the folder holds no adapter."""
    return int(_config(name, path).get("r") or 0)


def _config(name: str, path: Path) -> Mapping[str, Any]:
    """The configuration of an adapter. Raises UsageError if the folder holds no adapter."""
    try:
        config = json.loads((path / "adapter_config.json").read_bytes())
        return {**config, "r": int(config.get("r", 0))}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"--lora {name}={path}: the folder has no readable adapter_config.json") from error
