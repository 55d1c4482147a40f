"""Candidates a second of eight workers beside one, where each proposal takes a second to come: the engine's own part of
a search with a model. States are made, forked, measured and recorded as in any search for a patch: a test fails, and
fails still with each candidate. The first rounds, in which the warm session starts, do not count."""

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
"""Candidates of each worker before them."""
GOAL = 7.0
FAILING = "test_that_fails.py"


@dataclass(frozen=True)
class Slow:
    """Proposes a comment of its own each time, after a while."""

    path: str
    source: bytes
    latency_s: float
    numbers: Iterator[int]
    policy_id: str = "slow/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        """As a model would: the time goes by in a call to elsewhere."""
        time.sleep(self.latency_s)
        number = next(self.numbers)
        return Proposal((Write(self.path, f"{self.source.decode()}\n# candidate {number}\n"),), label=str(number))


def options(parser: ArgumentParser) -> None:
    """Of this script."""
    parser.add_argument("--latency", type=float, default=1.0, metavar="S", help="of a proposal; default: 1")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N", help=f"beside one; default: {WORKERS}")


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """One row, on the first repository."""
    repository = chosen(given.repositories)[0]
    each = given.n or N
    one = rate(bench, repository, 1, each, given.latency)
    many = rate(bench, repository, given.workers, each, given.latency)
    what = f"candidates a second, {given.workers} workers beside 1, {given.latency:g} s a proposal ({repository.name})"
    yield at_least(what, f"{many:.2f} beside {one:.2f} a second", each, many / one, GOAL, "x as many")


def rate(bench: Bench, repository: Repository, workers: int, each: int, latency_s: float) -> float:
    """Candidates a second of a search from its root on."""
    candidates = workers * (WARM_UP + each)
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
    return workers * each / (moments[-1] - moments[workers * WARM_UP])


def unsolvable(repository: Repository, checkout: Path, copy: Path) -> Task:
    """A task of a repository, copied there, in which a test fails whatever is edited."""
    broken = shutil.copytree(checkout, copy, symlinks=True)
    (broken / FAILING).write_text("def test_it():\n    raise AssertionError\n")
    command = f"python3 -m pytest -q {repository.tests} {FAILING}"
    return Task(repository.name, "A test fails.", repository.workspace(broken), command)


if __name__ == "__main__":
    main(__doc__, options, rows)
