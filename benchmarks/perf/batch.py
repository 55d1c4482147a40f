"""Candidates per second that searches without a model measure, in an existing or a new batch of real tasks."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.run.events import Added, Failed, Merged
from agent.run.journal import read_events
from benchmarks.perf.bench import Bench
from benchmarks.perf.script import main
from benchmarks.perf.table import Row

SECONDS = 20.0


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--batch", metavar="DIR", help="a batch that `ramify bench run` made")
    parser.add_argument("--source", metavar="SOURCE", help="instances to run; see `ramify bench run --help`")
    parser.add_argument("--slice", default="0:4", metavar="A:B", help="a slice of the source; default: 0:4")
    parser.add_argument(
        "--task-seconds", type=float, default=SECONDS, metavar="S", help=f"seconds per task; default: {SECONDS:g}"
    )


def rows(bench: Bench, given: Namespace) -> Iterator[Row]:
    """One row; nothing without a batch or a source."""
    if given.batch:
        yield found(Path(given.batch))
    elif given.source:
        with TemporaryDirectory() as out:
            run(given, Path(out))
            yield found(Path(out))


def run(given: Namespace, out: Path) -> None:
    """Fill a batch. Its tasks are expected to end at their limit."""
    command = [sys.executable, "-m", "agent", "bench", "run", given.source, "--out", str(out), "--model", "mutate"]
    limits = ["--reveal-tests", "--slice", given.slice, "--max-seconds", str(given.task_seconds)]
    subprocess.run([*command, *limits, "--sandbox", given.sandbox], check=False, stdout=sys.stderr)


@dataclass(frozen=True, slots=True)
class Search:
    """The speed of a run, from its journal."""

    candidates: int
    seconds: float
    """From the base state's report to the last candidate's."""
    whole: float
    """From the start of the run."""


def found(batch: Path) -> Row:
    """The rate of all runs together, as if one worker had done them one after the other."""
    searches = [search for path in sorted(batch.glob("*/journal.jsonl")) if (search := searched(path)) is not None]
    if not searches:
        sys.exit(f"{batch} holds no run that measured a candidate")
    total = sum(search.candidates for search in searches)
    rate = total / sum(search.seconds for search in searches)
    whole = total / sum(search.whole for search in searches)
    what = f"candidates a second of one worker, {len(searches)} tasks, without a model"
    return Row(what, f"{whole:.2f} with set-up and baseline", "", total, f"{rate:.2f} while searching")


def searched(journal: Path) -> Search | None:
    """The speed of a run; None if no candidate was measured."""
    moments = [event.elapsed_s for event in read_events(journal) if isinstance(event, Added | Merged | Failed)]
    if len(moments) < 2:
        return None
    return Search(len(moments) - 1, moments[-1] - moments[0], moments[-1])


if __name__ == "__main__":
    main(__doc__, options, rows)
