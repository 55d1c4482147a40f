"""A batch whose runner is killed in the midst of its work goes on as if nothing had been."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.batch.batch import Attempt, Batch, Identity, read_attempts
from benchmarks.data.jsonl_ledger import read_lines
from benchmarks.reports.report import read_report
from tests.instances import make_benchmark

OPTIONS = ("--reveal-tests", "--max-nodes", 3, "--sandbox", "namespace", "-c")
SETTINGS = 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}'
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


@pytest.mark.namespace
@pytest.mark.slow
def test_no_instance_is_lost_or_run_twice_and_the_report_is_the_same(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    folder = make_benchmark(tmp_path / "set", ids=("a", "b"), test_cmd=command, requirements=[])
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    subprocess.run(bench("run", folder, "--out", alone, *OPTIONS, SETTINGS), check=True, capture_output=True)
    twice = interrupted(
        bench("run", folder, "--out", killed, *OPTIONS, SETTINGS), killed, moments(events(alone), 1, Random(1))
    )
    assert (len(twice.kills), twice.sessions) == (1, 2)
    assert sorted(read_attempts(killed)) == ["a", "b"]
    assert attempted_twice(killed) == []
    assert list(differences(alone, killed, 1)) == []


class TestABatchThatIsKilled:
    def test_moments_are_drawn_in_order_and_leave_something_to_do(self):
        drawn = [moments(10, 3, Random(seed)) for seed in range(50)]
        assert all(0 < a < b < c < 10 for a, b, c in drawn)

    def test_what_differs_is_said_but_for_test_runs_that_a_kill_cut_off(self, tmp_path):
        def batch(name, *attempts):
            made = Batch(tmp_path / name, Identity("set", "hidden", "m"))
            for each in attempts:
                made.record(each)
            made.close()
            return tmp_path / name

        a, b = (Attempt(name, "done", "hidden", b"p", facts={"measurements": 2, "seconds": 1.0}) for name in "ab")
        alone = batch("alone", a, b)
        again = replace(a, facts={"measurements": 3, "seconds": 9.0})
        assert list(differences(alone, batch("same", b, again), 1)) == []
        often = batch("often", replace(a, facts={"measurements": 4}, patch=b"q"))
        assert list(differences(alone, often, 1)) == [
            "a: 2 more test runs after 1 kills", "b: only in alone", "a: patch is b'p' and b'q'"
        ]  # fmt: skip
        assert attempted_twice(batch("twice", a, b, a)) == ["a"]
