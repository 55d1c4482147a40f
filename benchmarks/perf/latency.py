"""Candidates per second with eight workers, compared with one, if each proposal takes a second to arrive: the engine's
own share of a search with a model.

States are made, forked, measured and recorded as in any search for a patch. A test fails, and still fails with each
candidate. The first rounds, in which the warm session starts, do not count.
"""

from __future__ import annotations

import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from agent.actions import Write
from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.events import Added
from agent.run.journal import read_events
from agent.run.run import Run
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from agent.task import Task
from benchmarks.perf.bench import Bench, chosen, say
from benchmarks.perf.repositories import Repository
from benchmarks.perf.script import main
from benchmarks.perf.table import Row, at_least

WORKERS = 8
N = 8
"""Candidates of each worker that count."""
WARM_UP = 2
"""Candidates of each worker before those."""
GOAL = 7.0
FAILING = "test_that_fails.py"


@dataclass(frozen=True)
class Slow:
    """Proposes a different comment each time, after a delay."""

    path: str
    source: bytes
    latency_s: float
    numbers: Iterator[int]
    policy_id: str = "slow/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        """Wait, as for a model, then propose."""
        time.sleep(self.latency_s)
        number = next(self.numbers)
        return Proposal((Write(self.path, f"{self.source.decode()}\n# candidate {number}\n"),), label=str(number))


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--latency", type=float, default=1.0, metavar="S", help="seconds per proposal; default: 1")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"default: {WORKERS}")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """One row, on the first repository."""
    repository = chosen(given.repositories)[0]
    count = given.n or N
    one = rate(bench, repository, 1, count, given.latency)
    many = rate(bench, repository, given.workers, count, given.latency)
    what = f"candidates a second, {given.workers} workers beside 1, {given.latency:g} s a proposal ({repository.name})"
    yield at_least(what, f"{many:.2f} beside {one:.2f} a second", count, many / one, GOAL, "x as many")


def rate(bench: Bench, repository: Repository, workers: int, per_worker: int, latency_s: float) -> float:
    """Candidates per second of a new search."""
    candidates = workers * (WARM_UP + per_worker)
    say(f"{repository.name}: {candidates} candidates by {workers} workers")
    policy = Slow(repository.edited, (bench.path(repository) / repository.edited).read_bytes(), latency_s, count())
    with TemporaryDirectory(prefix="latency-") as folder, Run.open(Path(folder, "run")) as run:
        task = unsolvable(repository, bench.path(repository), Path(folder, "repository"))
        budget = Budget(max_nodes=candidates + 1)
        search = BestOfN(n=candidates, depth=1)
        parts = Components(bench.provider(repository), policy, search, PassingTests(), budget, 1, workers)
        solve(task, parts, run)
        moments = [event.elapsed_s for event in read_events(run.journal.path) if isinstance(event, Added)]
    if len(moments) <= candidates:
        raise RuntimeError(f"fewer than {candidates} candidates were recorded")
    return workers * per_worker / (moments[-1] - moments[workers * WARM_UP])


def unsolvable(repository: Repository, checkout: Path, copy: Path) -> Task:
    """A task in a copy of a repository, in which a test fails whatever is edited."""
    broken = shutil.copytree(checkout, copy, symlinks=True)
    (broken / FAILING).write_text("def test_it():\n    raise AssertionError\n")
    command = f"python3 -m pytest -q {repository.tests} {FAILING}"
    return Task(repository.name, "A test fails.", repository.workspace(broken), command)


if __name__ == "__main__":
    main(__doc__, rows, options)
