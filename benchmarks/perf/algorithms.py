"""Compares the search algorithms at equal test runs: tasks solved by `mutate`, and test runs for each of them.

    python -m benchmarks.perf.algorithms SOURCE --out DIR [--searches a,b] [--seeds 0,1] [--measurements 40]

It counts test runs, so that other load on the machine changes nothing. A batch in DIR is resumed and not made again.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from agent.search.registry import SEARCHES
from benchmarks.batch.batch import read_attempts
from benchmarks.perf.second_round import ramify
from benchmarks.perf.table import head, line

FOR_MUTATE = tuple(name for name in SEARCHES if name != "strategies")
HEADINGS = ("search", "seeds", "tasks solved", "test runs", "test runs for each task solved", "median of those solved")


@dataclass(frozen=True, slots=True)
class Batch:
    """One algorithm with one seed over all tasks."""

    tasks: int
    spent: int
    """Test runs, including those of unsolved tasks."""
    solved: tuple[int, ...]
    """The test runs of each solved task."""

    @classmethod
    def read(cls, out: Path) -> Batch:
        """Read a batch that ended."""
        facts = [attempt.facts for attempt in read_attempts(out).values()]
        solved = tuple(int(fact["measurements"]) for fact in facts if fact.get("status") == "solved")
        return cls(len(facts), sum(int(fact.get("measurements", 0)) for fact in facts), solved)


def main() -> None:
    """Fill the batches that are missing and print the table."""
    given = _given()
    print(head(*HEADINGS), flush=True)
    for name in given.searches.split(","):
        seeds = [int(seed) for seed in given.seeds.split(",")]
        print(line(*cells(name, list(_batches(given, name, seeds)))), flush=True)
    print(f"\n`mutate`, failing tests known, at most {given.measurements} test runs a task, on {given.source}")


def cells(name: str, batches: Sequence[Batch]) -> tuple[str, ...]:
    """A line of the table: means over the seeds and, in brackets, their range if they differ."""
    return (
        f"`{name}`",
        str(len(batches)),
        f"{_spread([len(batch.solved) for batch in batches])} of {batches[0].tasks}",
        _spread([batch.spent for batch in batches]),
        _spread([batch.spent / max(1, len(batch.solved)) for batch in batches]),
        _spread([median(batch.solved) if batch.solved else 0 for batch in batches]),
    )


def _spread(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{mean(values):.1f}" + ("" if least == most else f" ({least:.0f}-{most:.0f})")


def _batches(given: Namespace, name: str, seeds: Sequence[int]) -> Iterator[Batch]:
    for seed in seeds:
        out = Path(given.out) / f"{name}-{seed}"
        choice = ["--model", "mutate", "--search", name, "--seed", str(seed), "--sandbox", given.sandbox]
        limits = ["-c", f"budget.max_measurements={given.measurements}", "--workers", str(given.workers)]
        limits += ["--filter", given.filter]
        ramify("run", given.source, "--out", str(out), "--reveal-tests", *choice, *limits)
        yield Batch.read(out)


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.algorithms", description="Searches at equal test runs.")
    parser.add_argument("source", help="instances; see `ramify bench run --help`")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the batches are kept")
    parser.add_argument("--searches", default=",".join(FOR_MUTATE), metavar="NAMES")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only instances whose id it matches")
    parser.add_argument("--seeds", default="0,1,2,3,4", metavar="NUMBERS")
    parser.add_argument("--measurements", type=int, default=40, metavar="N", help="test runs per task; default: 40")
    parser.add_argument("--sandbox", default="namespace")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tasks at the same time")
    return parser.parse_args()


if __name__ == "__main__":
    main()
