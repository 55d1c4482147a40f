"""Plays every search algorithm on the states of one run for each task, so that no state is made and measured twice.

    python -m benchmarks.perf.played SOURCE --out DIR [--searches a,b] [--seeds 0,1] [--measurements 25]

The table is that of `benchmarks.perf.algorithms`, whose batches take many times as long. The n-th proposal of `mutate`
at a state depends only on the state and n, and the measurement of a state is always the same. So if an algorithm
requests work that was done before, it gets the recorded outcome; new work is done by the engine in the task's sandbox.
The test runs that a search alone would have made are counted: for the base state, for each state that is new to it, and
for the verification of apparent solutions. A task that was played in DIR with the same number of test runs is not
played again.

One thing may differ: if two paths lead to one state, `mutate` does not repeat the edits of the first path, which
may be another one for each algorithm. The number of expansions of such states is printed below the table.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random

from agent.budget import Stop
from agent.build.composition import make_parts
from agent.config import given
from agent.engine.engine import Engine
from agent.engine.session import Session
from agent.evaluate.scorer import StagedScorer
from agent.files import write_atomically
from agent.run.events import Added, Event, Exhausted, Failed, Merged, Remeasured, Spent
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree
from agent.search.registry import SEARCHES, SINGLE_EDITS
from agent.solver.candidates import CandidatePool
from agent.solver.searcher import Searcher
from agent.solver.solve import solve
from benchmarks.batch.sandbox_choice import fitted
from benchmarks.data.instances import Instance, select
from benchmarks.data.sources import Source, open_source
from benchmarks.perf.algorithms import FOR_MUTATE, HEADINGS, Batch, cells
from benchmarks.perf.bench import say
from benchmarks.perf.part import Outcome, Part, Work

DRAWING = frozenset({"adaptive", "clade"})
"""The randomised algorithms. The others do not depend on the seed, and are played with the first seed only."""


@dataclass(frozen=True, slots=True)
class Play:
    """One algorithm with one seed."""

    search: str
    seed: int

    def __str__(self) -> str:
        return f"{self.search}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a play."""

    solved: bool
    runs: int
    """The total number of test runs."""
    other_ways: int = 0
    """Expansions of states that the whole run had reached by another path."""


@dataclass
class Player:
    """The search of the whole run: it selects the work that the plays need and the run does not have yet."""

    plays: Sequence[Play]
    limit: int
    """The most test runs of a play."""
    found: dict[str, Played] = field(default_factory=dict)
    """The results by play."""
    answers: CandidatePool | None = None
    """The candidates of the whole run, once it has begun."""
    _outcomes: dict[Work, Outcome] = field(default_factory=dict)
    _runs: dict[NodeId, int] = field(default_factory=dict)
    """The test runs that measuring a state took."""
    _verdicts: dict[NodeId, tuple[bool, int]] = field(default_factory=dict)
    """Whether a verification confirms a solution, and the test runs that it took."""
    _asked: Work | None = None
    _spent: int = 0
    _wanted: Iterator[Choice] | None = None

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """The work that a play needs next; None after the last play."""
        del rng
        if self._wanted is None:
            self._wanted = self._play_all(tree)
        return next(self._wanted, None)

    def heard(self, event: Event) -> None:
        """Note an event that the run records."""
        if isinstance(event, Spent):
            self._spent += event.usage.measurements
        elif isinstance(event, Added | Merged | Failed | Exhausted | Remeasured):
            if self._asked is None:
                return
            if (known := self._outcomes.get(self._asked)) is not None:
                known.closes = isinstance(event, Exhausted)
            else:
                self._outcomes[self._asked] = Outcome(event, isinstance(event, Exhausted))
                if isinstance(event, Added):
                    self._runs[event.node.id] = self._spent

    def _play_all(self, tree: Tree) -> Generator[Choice]:
        base = self._spent
        for play in self.plays:
            self.found[str(play)] = yield from self._play(tree, play, base)

    def _play(self, whole: Tree, play: Play, spent: int) -> Generator[Choice, None, Played]:
        search, part = SEARCHES[play.search](**SINGLE_EDITS.get(play.search, {})), Part(whole)
        while spent < self.limit:
            number = part.tree.ended_expansions
            if (choice := search.select(part.tree, Random(f"{play.seed}/select/{number}"))) is None:
                break
            work = part.work(choice)
            if work not in self._outcomes:
                self._asked, self._spent = work, 0
                yield Choice(work[0], choice.act, work[2], choice.kind)
                self._asked = None
            outcome = self._outcomes[work]
            state = part.take(choice, outcome)
            if state is not None:
                spent += self._runs[state]
                if whole[state].evaluation.solved:
                    solved, runs = self._verdict(whole, state)
                    spent += runs
                    if solved:
                        return Played(True, spent, part.other_ways)
        return Played(False, spent, part.other_ways)

    def _verdict(self, whole: Tree, state: NodeId) -> tuple[bool, int]:
        if state not in self._verdicts:
            assert self.answers is not None
            self._spent = 0
            self._verdicts[state] = bool(self.answers.verdict(whole[state])["solved"]), self._spent
        return self._verdicts[state]


@dataclass
class _Endless:
    """A searcher that does not stop when the task is solved."""

    growth: Searcher
    error: Exception | None = None

    def run(self, cancel: threading.Event, done: Callable[[], Stop | None], *, waiting: bool = False) -> Stop:
        """Search until everything is played."""
        del done, waiting
        stop = self.growth.run(cancel, lambda: None)
        self.error = self.growth.error
        return stop


def play(source: Source, instance: Instance, directory: Path, player: Player, sandbox: str) -> None:
    """Play on the states of one task."""
    settings = given((), {"policy.name": "mutate", "sandbox.kind": sandbox})
    source.prepare(instance)
    task, cancel = fitted(instance.task, settings), threading.Event()

    def begin(session: Session, scorer: StagedScorer) -> Searcher:
        player.answers = CandidatePool(session, scorer)
        return _Endless(Engine(session, scorer))

    with Run.open(directory) as run, ExitStack() as held:
        parts = replace(make_parts(settings, run, held, cancel), search=player)
        dumped = settings.model_dump(mode="json")
        solve(task, parts, run, settings=dumped, cancel=cancel, on_event=player.heard, begin=begin)


def main() -> None:
    """Play what has not been played yet, and print the table."""
    asked = _asked()
    source = open_source(asked.source, Path(asked.out).absolute() / ".clones", reveal=True)
    instances = select(source.instances(), pattern=asked.filter)
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    plays = [
        Play(name, seed) for name in asked.searches.split(",") for seed in (seeds if name in DRAWING else seeds[:1])
    ]

    def played(instance: Instance) -> Mapping[str, Played]:
        return _played(source, instance, Path(asked.out).absolute(), plays, asked)

    with ThreadPoolExecutor(asked.workers) as pool:
        tasks = list(pool.map(played, instances))
    print("|".join(["", *HEADINGS, ""]), "|".join(["", *["---"] * len(HEADINGS), ""]), sep="\n")
    for name in asked.searches.split(","):
        batches = [_batch([task[str(each)] for task in tasks]) for each in plays if each.search == name]
        print("|".join(["", *cells(name, batches), ""]))
    ways = sum(each.other_ways for task in tasks for each in task.values())
    print(f"\n`mutate`, failing tests known, at most {asked.measurements} test runs a task, on {asked.source}")
    print(f"Expansions of states to which the whole run had come by another way: {ways}")


def _played(
    source: Source, instance: Instance, out: Path, plays: Sequence[Play], asked: Namespace
) -> dict[str, Played]:
    said, directory = out / f"{instance.id}-{asked.measurements}.json", out / instance.id
    if not said.exists():
        shutil.rmtree(directory, ignore_errors=True)
        player = Player(plays, asked.measurements)
        play(source, instance, directory, player, asked.sandbox)
        if any(str(each) not in player.found for each in plays):
            sys.exit(f"{directory} ended before everything was played on it")
        write_atomically(said, json.dumps({name: asdict(each) for name, each in player.found.items()}).encode())
        shutil.rmtree(directory)
    found = {name: Played(**each) for name, each in json.loads(said.read_text()).items()}
    if missing := [str(each) for each in plays if str(each) not in found]:
        sys.exit(f"{said} lacks {', '.join(missing)}: remove it, or give another --out")
    say(f"{instance.id}: solved by {sum(each.solved for each in found.values())} of {len(found)}")
    return found


def _batch(tasks: Sequence[Played]) -> Batch:
    return Batch(len(tasks), sum(each.runs for each in tasks), tuple(each.runs for each in tasks if each.solved))


def _asked() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.played", description="Searches on the same states.")
    parser.add_argument("source", help="instances; see `ramify bench run --help`")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the results are kept")
    parser.add_argument("--searches", default=",".join(FOR_MUTATE), metavar="NAMES")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only instances whose id it matches")
    parser.add_argument("--seeds", default="0,1,2,3,4", metavar="NUMBERS", help="seeds of the randomised algorithms")
    parser.add_argument("--measurements", type=int, default=25, metavar="N", help="test runs per task; default: 25")
    parser.add_argument("--sandbox", default="namespace")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tasks at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
