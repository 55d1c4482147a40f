"""The cost of a batch apart from models and tests, with instances that a scripted answer solves at once, and how the
seconds per instance grow with their number.

    python -m benchmarks.perf.overhead [--counts 50,500] [--runs 50,500] [--sandbox namespace] [--workers 1]

Every instance is a whole run: a clone, a sandbox, a journal, two states measured (by `grep`, in a few milliseconds), a
patch verified and recorded. `the batch alone` has a solver that does nothing: what remains is the ledger, the
predictions and the progress display. Growth compares the CPU seconds per instance in the second and the last tenth of
the largest batch: nothing that the batch keeps may make its later instances more expensive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from agent.budget import Stop, Usage
from agent.build.composition import start
from agent.config import load
from agent.models import Completion
from agent.models.scripted import ScriptedModel, answer
from agent.solver.result import Result
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.batch.progress import BatchProgress
from benchmarks.batch.runner import Observers, OnEvent, Solve, StopSignal, run_batch
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source, open_source
from benchmarks.perf.script import machine
from benchmarks.perf.table import Row, markdown

COUNTS = (50, 500)
INTERVAL_S = 0.01
PLACES = {
    "benchmarks/data/clones.py": "cloning the repository",
    "sandboxes/": "the sandbox",
    "agent/measure/": "measuring",
    "agent/run/journal.py": "the journal",
    "agent/files.py": "the journal",
    "agent/run/run.py": "the journal",
    "agent/": "the search",
    "benchmarks/": "the batch",
}
"""The names of parts of our code by path; the first match counts."""
_FILES = {"note.txt": "wrong\n", "check.sh": "grep -q right note.txt\n"}
_GIT = ("git", "-c", "user.name=ramify", "-c", "user.email=ramify@localhost", "-c", "init.defaultBranch=main")


def synthetic(folder: Path, count: int) -> Path:
    """A set of `count` instances, all of one small repository."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    for name, text in _FILES.items():
        (repository / name).write_text(text, encoding="ascii")
    bundle = ["bundle", "create", "-q", str(folder / "one.bundle"), "HEAD", "main"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "base"], bundle):
        subprocess.run([*_GIT, *command], cwd=repository, check=True)
    row = {
        "problem_statement": "the note is wrong", "bundle": "one.bundle", "test_cmd": "sh check.sh", "base_commit": "",
        "FAIL_TO_PASS": [], "PASS_TO_PASS": [], "patch": "", "test_patch": "",
    }  # fmt: skip
    lines = [json.dumps({"instance_id": f"synthetic-{number:05}", **row}) for number in range(count)]
    (folder / "instances.jsonl").write_text("\n".join(lines), encoding="ascii")
    return folder


def scripted(source: Source, sandbox: str) -> Solve:
    """A `Solve` whose model is a script that answers at once."""
    settings = load(flags={"policy.name": "scripted/instant", "sandbox.kind": sandbox, "budget.max_tokens": 10**9})

    def reply(messages: object) -> Completion:
        return answer("", ("edit", {"path": "note.txt", "old": "wrong", "new": "right"}), ("run_tests", {}))

    def solve(instance: Instance, run_dir: Path, cancel: threading.Event, on_event: OnEvent) -> Result:
        source.prepare(instance)
        model = partial(ScriptedModel, reply)
        return start(
            instance.task, settings, run_dir, cancel=cancel, on_event=on_event, make=lambda name, **_: model(name)
        )

    return solve


def idle(instance: Instance, run_dir: Path, cancel: threading.Event, on_event: OnEvent) -> Result:
    """A `Solve` that does nothing."""
    return Result(
        status="no_patch", patch=b"x" * 2000, verified=False, stop=Stop.EXHAUSTED, usage=Usage(), best_node=None,
        run_dir=run_dir, nodes=1, seconds=0.0, baseline={}, final={},
    )  # fmt: skip


@dataclass(slots=True)
class Costs:
    """An observer that notes what a batch takes."""

    wall: list[float] = field(default_factory=list)
    """When each instance ended."""
    cpu: list[float] = field(default_factory=list)
    """CPU seconds of this process and its children by then."""
    solved: int = 0

    def started(self, instance: Instance) -> None:
        """Nothing to note."""

    def advanced(self, instance: Instance, news: object) -> None:
        """Nothing to note."""

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        """Note the times."""
        self.solved += attempt is not None and attempt.facts.get("status") == "solved"
        self._look()

    def _look(self) -> None:
        self.wall.append(time.monotonic())
        self.cpu.append(sum(os.times()[:4]))

    def each(self, moments: list[float]) -> float:
        """Seconds per instance, without the first, which loads libraries."""
        return (moments[-1] - moments[0]) / (len(moments) - 1)

    def growth(self) -> float:
        """The CPU seconds per instance in the last tenth, as a multiple of those in the second tenth."""
        tenth = max(2, len(self.cpu) // 10)
        return self.each(self.cpu[-tenth:]) / max(self.each(self.cpu[tenth : 2 * tenth]), 1e-9)


def measured(source: Source, solve: Solve, out: Path, workers: int = 1) -> Costs:
    """Run all instances of a source."""
    instances, costs = list(source.instances()), Costs()
    batch = Batch(out, Identity("synthetic", "hidden", "scripted"))
    try:
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stderr(nowhere),
            BatchProgress(len(instances), "hidden") as shown,
        ):
            run_batch(
                batch, instances, solve, workers=workers, stopping=StopSignal(), observer=Observers((shown, costs))
            )
    finally:
        batch.close()
    return costs


@contextmanager
def sampled() -> Iterator[Counter[str]]:
    """Yield a counter of where the threads of a batch are, sampled many times a second during the block."""
    samples: Counter[str] = Counter()
    over = threading.Event()

    def look() -> None:
        while not over.wait(INTERVAL_S):
            named = {thread.ident for thread in threading.enumerate() if thread.name.startswith("instance")}
            frames = sys._current_frames()  # noqa: SLF001  # there is no public name
            samples.update(place(frame) for ident, frame in frames.items() if ident in named)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def place(frame: FrameType | None) -> str:
    """The name of the innermost part of our code in a stack."""
    while frame is not None:
        file = frame.f_code.co_filename
        if name := next((name for path, name in PLACES.items() if path in file), ""):
            return name
        frame = frame.f_back
    return "waiting for work"


def _rows(what: str, counts: list[int], make: Callable[[Source], Solve], workers: int, folder: Path) -> Iterator[Row]:
    """A row for each count, and one for the growth."""
    for count in counts:
        place_ = folder / f"{what} {count}"
        source = open_source(str(synthetic(place_ / "set", count)), place_ / "clones")
        with sampled() as moments:
            costs = measured(source, make(source), place_ / "out", workers)
        seconds = f"{1000 * costs.each(costs.wall):.1f} ms an instance"
        yield Row(f"{what}, {count} instances", seconds, "", count, f"{1000 * costs.each(costs.cpu):.1f} ms of CPU")
        parts = moments.most_common() if costs.solved else []
        for name, seen in parts:
            yield Row(f"of that: {name}", f"{100 * seen / moments.total():.0f} %", "", seen, "")
    yield Row(f"{what}: growth to the last tenth of {counts[-1]}", "", "", counts[-1], f"{costs.growth():.2f}x")


def main() -> None:
    """Read the command line, print the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), metavar="N,N")
    parser.add_argument("--runs", default="", metavar="N,N", help="counts for whole runs; default: as --counts")
    parser.add_argument("--sandbox", default="namespace", choices=["docker", "namespace"])
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    given = parser.parse_args()
    counts, runs = ([int(count) for count in text.split(",")] for text in (given.counts, given.runs or given.counts))
    before = os.getloadavg()[0]
    with TemporaryDirectory(prefix="overhead-") as folder:
        where = Path(folder)
        alone = list(_rows("the batch alone", counts, lambda source: idle, given.workers, where))
        print(markdown(alone), flush=True)
        whole = list(_rows("whole runs", runs, lambda s: scripted(s, given.sandbox), given.workers, where))
    print(markdown(whole))
    print(f"\n{machine()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
