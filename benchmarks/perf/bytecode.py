"""Counts wrong verdicts because of stale byte code, compared with the same edits by `docker exec` in one container.

Quick edits may leave a file's size and the second of its modification time unchanged. A test after each edit shows
which edit it saw.
"""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from itertools import count

from benchmarks.perf import peer
from benchmarks.perf.bench import Bench, Candidates
from benchmarks.perf.repositories import MOUNT, REPOSITORIES
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_most
from sandboxes import Sandbox

EDITS = 60
OTHERS = 20
TINY = REPOSITORIES["tiny"]
_NUMBERS = count(1)
EDIT = f"cat > {TINY.edited} && touch -d @1000000000 {TINY.edited}"
RUN = f"python3 -m pytest -q {TINY.test}"


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--edits", type=int, default=EDITS, metavar="N", help=f"edits on our side; default: {EDITS}")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """A row for candidates that are measured, and one for commands of an agent that see its own edits."""
    with peer.container(bench.client, bench.image(TINY)) as box:
        usual = f"{wrong(OTHERS, lambda value: _seen_by_exec(box.id or '', value))} of {OTHERS}"
    candidates = bench.candidates(TINY)
    what = "wrong verdicts after edits of the same size and second"
    for where, judge, n in (
        ("measured", measured, given.edits),
        ("by commands in one fork", in_one_fork, max(OTHERS, given.edits // 10)),
    ):
        count = judge(bench, candidates, n)
        yield at_most(f"{what}, {where}", f"{count} of {n}", n, count, 0, "", usual=usual)


def wrong(n: int, saw_one: Callable[[int], bool]) -> int:
    """How many of `n` edits, to `x = 1` and `x = 2` in turn, a test of `x == 1` judged wrongly."""
    return sum(saw_one(1 + number % 2) != (number % 2 == 0) for number in range(n))


def measured(bench: Bench, candidates: Candidates, n: int) -> int:
    """Wrong verdicts if every edit is a child of the previous state and is measured like a node."""
    state = candidates.base

    def saw_one(value: int) -> bool:
        nonlocal state
        parent = state if value == 2 else candidates.base  # the chain stays short
        with bench.provider(TINY).at(parent) as fork:
            _edit(fork, value)
            state = fork.snapshot()
        return candidates.passes(state)

    return wrong(n, saw_one)


def in_one_fork(bench: Bench, candidates: Candidates, n: int) -> int:
    """Wrong verdicts if one command makes the edit and another runs the test."""
    with bench.provider(TINY).at(candidates.base) as fork:

        def saw_one(value: int) -> bool:
            _edit(fork, value)
            return _judged(fork.exec(["sh", "-c", RUN], timeout_s=60).exit_code)

        return wrong(n, saw_one)


def _edit(fork: Sandbox, value: int) -> None:
    fork.exec(["sh", "-c", EDIT], timeout_s=60, stdin=_text(value))


def _seen_by_exec(box: str, value: int) -> bool:
    peer.docker("exec", "-i", "-w", MOUNT, box, "sh", "-c", EDIT, stdin=_text(value))
    done = subprocess.run(["docker", "exec", "-w", MOUNT, box, "sh", "-c", RUN], capture_output=True, check=False)
    return _judged(done.returncode)


def _judged(exit_code: int) -> bool:
    """Whether the test passed. Raises RuntimeError if it did not run."""
    if exit_code > 1:
        raise RuntimeError(f"{RUN} ended with {exit_code}")
    return exit_code == 0


def _text(value: int) -> bytes:
    """The file's content: always of the same size, never equal."""
    return b"x = %d  # edit %06d\n" % (value, next(_NUMBERS))


if __name__ == "__main__":
    main(__doc__, rows, options)
