"""Measures whether a tree of work pays for itself: compares efforts on real tasks, with a calibrated developer.

    python -m benchmarks.perf.efforts_sim SOURCE --out DIR [--seeds 20] [--right 0.967,0.75,0.5,0.3] [--fooled 0,0.5]
    python -m benchmarks.perf.efforts_sim SOURCE --out DIR --arms recipes --right 0.5 --fooled 0

Each run is one of the real program, in the namespace sandbox, with hidden tests; only the model is simulated
(`benchmarks.perf.calibrated` says what is drawn and what was measured). The variants of the reference patches are
examined first, by the hidden tests. A run's answer is a known fix and tests, so what the hidden tests said of that fix
is the verdict, and no answer is graded again.

All searches of a task and seed get the same lines of work, in the same order: they differ in how many they take, how
they branch, and how they choose. Seeds are those of the developer: 0, 1, 2 and so on; the program's is always 0. Tasks
without a wrong variant are left out. Results are appended to DIR/results.jsonl; a second call makes those that are
missing, seed by seed.

Runs meet the same states again and again. What tests say is kept in DIR/reports, and reused where a run would run the
same tests on the same source and test files; each counts as a test run all the same. Marks (`calibrated.MARK`) are
comments: they are the same to all tests but those that look for them, and then it counts whether they are there. A run
in which the developer would give the same answers to the same requests as in an earlier run is not made again. Seconds
are not compared.
"""

from __future__ import annotations

import json
import os
import shutil
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from tempfile import mkdtemp
from threading import Lock
from typing import Any
from unittest.mock import patch

from agent.build.composition import start
from agent.config import load
from agent.evaluate import own_tests
from agent.measure import SuiteReport, suite
from agent.measure.results import Results
from agent.measure.suite import Rules
from agent.recipes import everything
from agent.solver.result import Result
from agent.task import Task
from benchmarks.data.sources import open_source
from benchmarks.perf.answering import Answer, serving
from benchmarks.perf.calibrated import MARKED, NEW_TESTS, RIGHT, CalibratedDeveloper, Known, Rates
from benchmarks.perf.table import line, share
from benchmarks.perf.variants import examined
from benchmarks.reports.comparison import bootstrap
from sandboxes import Provider, Snapshot
from sandboxes.namespace.provider import namespace_provider

EFFORTS: Mapping[str, Mapping[str, Any]] = {
    "one line": {"effort": "low"},
    "one line, judged": {"effort": "medium"},
    "four lines, votes": {"effort": "high", "tournament.crosscheck": False},
    "four lines, votes that see the matrix": {"effort": "high"},
    "tree": {"rollouts": 4, "search.name": "reproduce"},
    "tree, judged, two rounds": {"effort": "max"},
}
MEMORY = "memory.path"
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "": {"rollouts": 4},
    "policies": {"rollouts": 4, "panel": ("openai/colleague",)},
    "memory": {"rollouts": 4, MEMORY: "memory"},
}
"""Settings for recipes that leave them open, by what they need: a second model, which is the same developer, and a
memory in the folder of the run, which is empty at first."""
SYSTEMS: Mapping[str, Mapping[str, Any]] = {
    each.name: {name: set_to for name, set_to in NEEDED.get(each.needs, {}).items() if name not in each.settings}
    | {"recipe": each.name}
    for each in everything()
    if each.kind == "search"
}
"""The recipes that search."""
ARMS = {**EFFORTS, **SYSTEMS}
"""Settings by name."""
BASELINE = "four lines, votes"
"""The arms that the others are compared with, in pairs."""
DRAWS = 2000
"""Of the bootstrap."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run."""

    arm: str
    right: float
    fooled: float
    task: str
    seed: int
    resolved: bool
    requests: int
    test_runs: int
    seconds: float

    @property
    def pair(self) -> tuple[str, int]:
        """What a run of each arm has in common."""
        return self.task, self.seed


def table(runs: Iterable[Ran]) -> Iterator[str]:
    """A line of Markdown for each rate and arm, of the tasks and seeds that all arms of the rate have."""
    by_rate: dict[tuple[float, float], dict[str, dict[tuple[str, int], Ran]]] = {}
    for run in runs:
        by_rate.setdefault((run.right, run.fooled), {}).setdefault(run.arm, {})[run.pair] = run
    for (right, fooled), arms in sorted(by_rate.items(), reverse=True):
        common = sorted(set.intersection(*(set(found) for found in arms.values())))
        for arm in sorted(arms, key=list(ARMS).index):
            ran = [arms[arm][pair] for pair in common]
            against = [arms[BASELINE][pair] for pair in common] if BASELINE in arms and arm != BASELINE else []
            yield line(f"{right:.2f}", f"{fooled:g}", arm, *cells(ran, against))


def cells(ran: Sequence[Ran], against: Sequence[Ran]) -> tuple[str, ...]:
    """The share that runs resolved, the cost of one, and the paired difference from other runs, if there are any."""
    resolved = share(sum(run.resolved for run in ran), len(ran))
    means = (f"{fmean(column):.1f}" for column in ([r.requests for r in ran], [r.test_runs for r in ran]))
    return (resolved, *means, difference(ran, against) if against else "")


def difference(ran: Sequence[Ran], against: Sequence[Ran]) -> str:
    """The mean difference of what is resolved, in pairs, with a 95 % interval: percentiles of a bootstrap over tasks,
    whose seeds stay together."""
    by_task: dict[str, list[int]] = {}
    for one, other in zip(ran, against, strict=True):
        by_task.setdefault(one.task, []).append(one.resolved - other.resolved)
    tasks = list(by_task.values())
    low, high = bootstrap(tasks, _mean, DRAWS)
    return f"{_mean(tasks):+.2f} [{low:+.2f}, {high:+.2f}]"


def _mean(tasks: Sequence[Sequence[int]]) -> float:
    return fmean(each for task in tasks for each in task)


@contextmanager
def remembered(folder: Path) -> Iterator[None]:
    """Within the block, do not run the same tests twice on the same files."""
    results, run_restored = Results(folder), suite.run_restored

    def find(*given: Any) -> SuiteReport:
        return results.find(_measured(*given), lambda: run_restored(*given), keep=True)[0]

    with (
        patch.object(suite, "run_restored", find),
        patch.object(own_tests, "run_restored", find),
        patch.object(suite, "find_warm", lambda box, command: None),  # a copied run is not looked up
    ):
        yield


def _measured(
    provider: Provider,
    task: Task,
    snapshot: Snapshot,
    base: Snapshot,
    put_back: Sequence[str],
    tests: Sequence[str],
    rules: Rules,
    files: Mapping[str, bytes] = suite.NO_FILES,
) -> tuple[str, ...]:
    """A key of everything that the result of `suite.run_restored` depends on."""
    changed = [change.path for change in provider.changes(base, snapshot) if change.path not in put_back]
    with provider.at(snapshot) as box:
        found = {path: box.read(path) for path in changed} | dict(files)
    if not tests and task.test_command.endswith(".py"):  # new test files are not run
        found = {path: text for path, text in found.items() if not path.endswith(NEW_TESTS)}
    source, own = (
        "".join(f"{path}\n{found[path].decode()}\n" for path in sorted(found) if path.endswith(NEW_TESTS) is is_test)
        for is_test in (False, True)
    )
    marked = set(MARKED.findall(own)) <= set(MARKED.findall(source))
    parts = (MARKED.sub("", source).rstrip(), MARKED.sub("", own), str(marked), rules.adapter, str(rules.by_path))
    return (task.id, base.digest, *parts, *tests)


Said = list[tuple[Mapping[str, Any], Mapping[str, Any]]]
"""Requests and their answers, in order."""


class Runs:
    """Makes runs of the program, each in a folder below `work` that is removed. Thread-safe."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._made: defaultdict[tuple[str, str], list[tuple[Said, Ran]]] = defaultdict(list)

    def run(self, known: Known, arm: str, rates: Rates, seed: int) -> Ran:
        """The result of a run, or of an earlier one in which the developer gave the answers that it would give now."""
        made = self._made[known.instance.id, arm]
        for said, ran in made:
            developer = CalibratedDeveloper(known, rates, seed)
            if all(developer(asked) == answer for asked, answer in said):
                return replace(ran, right=rates.right, fooled=rates.fooled, seed=seed)
        said = Said()
        result = self._start(known, arm, CalibratedDeveloper(known, rates, seed), said)
        verdict = known.verdict(result.patch)
        if verdict is None:
            raise AssertionError(f"{known.instance.id}: the answer is no known fix:\n{result.patch.decode()}")
        spent = result.usage.model_calls, result.usage.measurements
        ran = Ran(arm, rates.right, rates.fooled, known.instance.id, seed, verdict, *spent, round(result.seconds, 2))
        made.append((said, ran))
        return ran

    def _start(self, known: Known, arm: str, developer: Answer, said: Said) -> Result:
        def answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
            said.append((asked, developer(asked)))
            return said[-1][1]

        directory = Path(mkdtemp(dir=self._work))
        try:
            with serving(answer) as url:
                flags = {"policy.name": "openai/developer", "model.base_url": url, "model.stream": False}
                flags |= {MEMORY: str(directory / ARMS[arm][MEMORY])} if MEMORY in ARMS[arm] else {}
                settings = load(flags={**ARMS[arm], **flags, "sandbox.kind": "namespace"})
                return start(known.instance.task, settings, directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def known_tasks(given: Namespace) -> list[Known]:
    """What the developer knows about the tasks of the source, examined in the sandbox."""
    out = Path(given.out)
    source = open_source(given.source, out / "source")
    found = []
    with namespace_provider(out / "store") as provider:
        for instance in source.instances():
            if not instance.hidden.test_patch or not any(name in instance.id for name in given.tasks.split(",")):
                continue
            variants = examined(instance, source, provider, out)
            source.prepare(instance)
            found.append(Known.of(instance, variants))
    return [known for known in found if known.wrong]


def read(results: Path) -> list[Ran]:
    """The results so far."""
    return [Ran(**json.loads(line)) for line in results.read_text().splitlines()] if results.exists() else []


def main() -> None:
    """Make the missing runs and print the table."""
    given = _given()
    results = Path(given.out, "results.jsonl")
    os.environ.setdefault("OPENAI_API_KEY", "none")
    if given.seeds:
        _fill(given, results)
    print(*table(read(results)), sep="\n")


def _fill(given: Namespace, results: Path) -> None:
    tasks = known_tasks(given)
    done = {(each.right, each.fooled, each.arm, each.pair) for each in read(results)}
    rates = [Rates(right=p, fooled=q) for p, q in product(_numbers(given.right), _numbers(given.fooled))]
    wanted = given.arms.split(",")
    arms = [*SYSTEMS] if wanted == ["recipes"] else [arm for n, arm in enumerate(ARMS) if {str(n), arm} & {*wanted}]
    todo = [
        (known, arm, rate, seed)
        for seed, rate, known, arm in product(range(given.seeds), rates, tasks, arms)
        if (rate.right, rate.fooled, arm, (known.instance.id, seed)) not in done
    ]
    work = Path(given.out, "work")
    work.mkdir(exist_ok=True)
    lock, runs = Lock(), Runs(work)

    def make(cell: tuple[Known, str, Rates, int]) -> None:
        ran = runs.run(*cell)
        with lock, results.open("a") as file:
            file.write(json.dumps(asdict(ran)) + "\n")

    with remembered(Path(given.out, "reports")), ThreadPoolExecutor(given.workers) as pool:
        for _ in pool.map(make, todo):
            pass


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.efforts_sim", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("source", help="instances; see `ramify bench run --help`")
    parser.add_argument("--out", required=True, metavar="DIR", help="where results are kept")
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="0: print the table of what there is")
    parser.add_argument("--right", default=f"{RIGHT:.3f},0.75,0.5,0.3", metavar="P,...", help="that a fix is right")
    parser.add_argument("--fooled", default="0,0.5", metavar="P,...", help="that a wrong change looks right to a judge")
    parser.add_argument(
        "--arms",
        default=",".join(map(str, range(len(EFFORTS)))),
        metavar="ARM,...",
        help="efforts by number, recipes by name; or `recipes`",
    )
    parser.add_argument("--tasks", default="", metavar="TEXT,...", help="only those whose id has one of these")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="runs at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
