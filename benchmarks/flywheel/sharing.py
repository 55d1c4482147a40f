"""What both programs of the flywheel share: options, and training and serving a model."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import NoReturn

from agent.errors import RamifyError, UsageError
from agent.files import write_atomically
from agent.learning import serving, training
from agent.learning.managed_process import STOP_S

TO_END_S = STOP_S + 5
"""How long a worker may take to end what it has begun."""
GENERATED = ("combined", "unseen")
"""The generated repositories that are held out."""


def options(prog: str, description: str | None, *, width: int, workers: int, steps: int) -> argparse.ArgumentParser:
    """A parser with the options of both programs and these defaults."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--repository", type=Path, action="append", default=[], help="git; default: generated functions"
    )
    parser.add_argument("--hold-out", action="append", default=[], help="name of a repository that is not trained on")
    parser.add_argument("--test", default="python3 -m pytest -q")
    parser.add_argument("--functions", type=int, default=200, help="number of generated functions to train on")
    parser.add_argument("--a-function", type=int, default=4, help="the most mutants of one function that are tried")
    parser.add_argument("--lines", type=int, default=25, help="percentage of functions that are held out")
    parser.add_argument("--width", type=int, default=width, help="number of edits of a bug that are ranked")
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--steps", type=int, default=steps, help="training steps")
    parser.add_argument(
        "--train-python", type=Path, help="interpreter with the packages for training; without it no model is trained"
    )
    parser.add_argument("--serve-python", type=Path, default=Path("python3"), help="interpreter with vLLM")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE")
    return parser


def trained(args: argparse.Namespace, out: Path, wanted: training.Wanted) -> serving.Server:
    """Train a model on the rows in `out`. Returns the server for it."""
    training.train(training.plan("sft", [out / "rows"], wanted), out / "training", python=args.train_python)
    return serving.Server(str(out / "training" / "model"), "edit-model", port=args.port, cpu=args.cpu)


def serve(args: argparse.Namespace, server: serving.Server, out: Path, held: ExitStack) -> None:
    """Serve a model until `held` ends."""
    held.enter_context(serving.running(server, str(args.serve_python), log=out / f"{server.served}.log"))


def agreed(path: Path, args: argparse.Namespace, names: Sequence[str]) -> None:
    """Record in a file with which of these options its folder is made, or compare them with an earlier record.

    Raises:
        UsageError: the folder was made with other options.
    """
    chosen = json.loads(json.dumps({name: getattr(args, name) for name in names}, default=str))
    if path.exists():
        before = json.loads(path.read_bytes())
        other = [
            f"{name} {before.get(name)}, not {value}" for name, value in chosen.items() if before.get(name) != value
        ]
        if other:
            raise UsageError(f"{path.parent} was made with {'; '.join(other)}: use the same, or name a new --out")
    write_atomically(path, (json.dumps(chosen, indent=1) + "\n").encode())


def ended(main: Callable[[], int]) -> NoReturn:
    """Exit with the code that `main` returns, or with its error message."""
    try:
        sys.exit(main())
    except RamifyError as error:
        sys.exit(f"error: {error}")


def end_with_parent() -> None:
    """For workers of a pool: end this process when its parent ends, even by a kill. What it has begun, such as a
    training, ends with it."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(TO_END_S)
        os._exit(1)  # a pool keeps its worker after an error of the work

    Thread(target=watch, daemon=True).start()
