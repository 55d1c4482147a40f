"""Compares a batch whose runner is killed (kill -9) at random moments and resumed with the same batch left alone.

Moments are numbers of events in the journals, drawn with --seed, so that kills come during work however busy the
machine is. It checks that every instance ended once, and that the two reports differ only in seconds and in the test
runs that a kill cut off, which were paid for and repeated: at most one for each instance and kill.

    python -m benchmarks.perf.killed SOURCE --out DIR [--slice 0:4] [--kills 3] [--workers 2] [OPTIONS of bench run]
"""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.batch.batch import read_attempts
from benchmarks.data.jsonl_ledger import read_lines
from benchmarks.reports.report import read_report

_LOOK_S = 0.02
_WITHIN = ("seconds", "measurements")
"""The fields in which two runs of the same batch may differ, the second by as many as there were kills."""


@dataclass(frozen=True, slots=True)
class Twice:
    """The course of a batch that was killed."""

    kills: tuple[str, ...]
    """When each kill came."""
    sessions: int


def bench(*arguments: object) -> list[str]:
    """The command line of `ramify bench`."""
    return [sys.executable, "-m", "agent", "bench", *map(str, arguments)]


def events(out: Path) -> int:
    """The number of events in the journals of a batch."""
    return sum(path.read_bytes().count(b"\n") for path in out.glob("*/journal.jsonl"))


def moments(total: int, kills: int, rng: Random) -> list[int]:
    """Different numbers of events below the total, sorted, one for each kill."""
    return sorted(rng.sample(range(1, total), kills))


def interrupted(command: Sequence[str], out: Path, at: Sequence[int]) -> Twice:
    """Run a command until it ends. It is killed at each of these numbers of events, and started again."""
    fell: list[str] = []
    for moment in at:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and events(out) < moment:
            time.sleep(_LOOK_S)
        process.kill()
        if process.wait() >= 0:
            return Twice(tuple(fell), len(fell) + 1)
        ended = len(read_attempts(out))
        fell.append(f"at {events(out)} events, {ended} instances ended")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Twice(tuple(fell), len(fell) + 1)


def attempted_twice(out: Path) -> list[str]:
    """Instances that ended more than once."""
    ends = Counter(row["instance_id"] for row in read_lines(out / "results.jsonl", torn=True))
    return sorted(name for name, times in ends.items() if times > 1)


def repeated(one: Path, other: Path) -> dict[str, int]:
    """How many more test runs an instance had in the second of two batches, for instances where that differs."""
    first, second = ({line.instance_id: line.measurements for line in read_report(out)} for out in (one, other))
    return {name: second[name] - first[name] for name in first.keys() & second.keys() if first[name] != second[name]}


def differences(one: Path, other: Path, kills: int) -> Iterator[str]:
    """Differences between the reports and the predictions of two batches, the second of which was killed this often."""
    for name, times in sorted(repeated(one, other).items()):
        if not 0 < times <= kills:
            yield f"{name}: {times} more test runs after {kills} kills"
    first, second = _lines(one), _lines(other)
    for name in sorted(first.keys() ^ second.keys()):
        yield f"{name}: only in {(one if name in first else other).name}"
    for name in sorted(first.keys() & second.keys()):
        for key, value in first[name].items():
            if value != second[name][key]:
                yield f"{name}: {key} is {value!r} and {second[name][key]!r}"


def _lines(out: Path) -> dict[str, dict[str, Any]]:
    attempts = read_attempts(out)
    return {
        line.instance_id: {key: value for key, value in asdict(line).items() if key not in _WITHIN}
        | {"patch": attempts[line.instance_id].patch}
        for line in read_report(out)
    }


def main() -> None:
    """Run both batches and print how they differ; exit code 1 if they do."""
    parser = ArgumentParser(description=__doc__, epilog="Other options are those of `ramify bench run`.")
    parser.add_argument("source", metavar="SOURCE")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where the batches are made")
    parser.add_argument("--slice", default="", metavar="A:B", help="a slice of the source; default: all")
    parser.add_argument("--kills", type=int, default=3, metavar="N")
    parser.add_argument("--workers", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the moments")
    given, others = parser.parse_known_args()
    options = ["--slice", given.slice, "--workers", given.workers, *others]
    alone, killed = given.out / "alone", given.out / "killed"
    began = time.monotonic()
    subprocess.run(bench("run", given.source, "--out", alone, *options), check=True)
    print(f"left alone: {len(read_attempts(alone))} instances, {events(alone)} events, {_since(began)}", flush=True)
    at = moments(events(alone), given.kills, Random(given.seed))
    began = time.monotonic()
    twice = interrupted(bench("run", given.source, "--out", killed, *options), killed, at)
    for fell in twice.kills:
        print(f"killed {fell}")
    print(f"killed {len(twice.kills)} times: {len(read_attempts(killed))} instances, {_since(began)}")
    faults = [f"{name} came to two ends" for name in attempted_twice(killed)] + list(
        differences(alone, killed, given.kills)
    )
    print(f"test runs that a kill cut off: {sum(repeated(alone, killed).values())}")
    print("\n".join(faults) or "no instance ended twice, none is lost, and the reports are the same")
    sys.exit(1 if faults else 0)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    main()
