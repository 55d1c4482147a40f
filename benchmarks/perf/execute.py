"""Measures a command in a running sandbox, compared with `docker exec`, and how late a runaway command is ended."""

from __future__ import annotations

import subprocess
import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench
from benchmarks.perf.repositories import REPOSITORIES
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_most, less
from benchmarks.perf.timing import Sample, Way, interleave, timed
from sandboxes import Sandbox
from sandboxes.docker.images import BASE_IMAGE

if TYPE_CHECKING:
    from docker.models.containers import Container

N = 40
TINY = REPOSITORIES["tiny"]
DEADLINE_S = 0.25
RUNAWAY = "trap '' TERM INT HUP; (setsid sh -c 'while :; do :; done' &); while :; do sleep 0.01; done"


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """Rows for `true` by each way, and one for lateness."""
    n = given.n or N
    base = bench.base(TINY)
    with bench.provider(TINY).at(base) as fork, peer.container(bench.client, BASE_IMAGE) as box:
        ways: dict[str, Way] = {
            "ours": partial(_in_fork, fork),
            "command line": lambda: timed(lambda: peer.docker("exec", str(box.id), "true")),
            "sdk": partial(_by_sdk, box),
            "spawned": lambda: timed(lambda: subprocess.run(["true"], check=True)),
        }
        taken = interleave(ways, n, bench.rng, warm_up=3)
    ours = taken["ours"]
    yield less("a command (`true`) beside `docker exec`", ours, taken["command line"], 20)
    yield less("a command (`true`) beside docker's SDK (`exec_run`)", ours, taken["sdk"], 20)
    spawned = taken["spawned"].median
    what = f"... what either adds to starting `true` on this machine ({spawned * 1000:.2f} ms)"
    over = [Sample(tuple(value - spawned for value in taken[name].seconds)) for name in ("ours", "command line")]
    yield less(what, over[0], over[1], 20)
    yield lateness(bench, max(3, n // 4))


def _in_fork(fork: Sandbox) -> float:
    return timed(lambda: fork.exec(["true"], timeout_s=60))


def _by_sdk(box: Container) -> float:
    return timed(lambda: box.exec_run(["true"]))


def lateness(bench: Bench, n: int) -> Row:
    """How long after its deadline a command has ended that ignores signals and has a child in another session."""
    late = []
    for _ in range(n):
        with bench.provider(TINY).at(bench.base(TINY)) as fork:
            began = time.perf_counter()
            ended = fork.exec(["sh", "-c", RUNAWAY], timeout_s=DEADLINE_S)
            late.append(time.perf_counter() - began - DEADLINE_S)
        if not ended.timed_out:
            raise RuntimeError(f"the command ended by itself, with {ended.exit_code}")
    sample = Sample(tuple(late))
    what = "a runaway command is gone, after its deadline"
    ours = f"{sample.median * 1000:.1f} (most {sample.most * 1000:.1f}) ms"
    return at_most(what, ours, n, sample.most * 1000, 50, " ms", usual="never: `docker exec` leaves it")


if __name__ == "__main__":
    main(__doc__, rows)
