"""Compares cold test runs with runs copied from a warm template: whether the outcomes are the same, and how much faster
the copied runs are.

Each instance's base state, its known patch, and random edits of the files that the patch touches are measured both
ways. If the outcomes differ, the cold run is repeated: a test that differs between the two cold runs is flaky, and is
counted separately. The exit code is 1 if a difference remains.

    python -m benchmarks.perf.warm shared/bench/dev/instances.jsonl --edits 3
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

from agent.evaluate.verification import apply_patch
from agent.measure import SuiteReport
from agent.measure.diffs import parse
from agent.measure.measurer import find_baseline
from agent.measure.suite import Rules, copy_run, rules_for, run_suite
from agent.task import Task
from benchmarks.data.instances import Instance
from benchmarks.data.sources.bundles import Bundles
from sandboxes import Provider, Snapshot
from sandboxes.namespace.provider import NamespaceProvider

SWAPS = (("+", "-"), ("<", "<="), ("==", "!="), (" and ", " or "), ("return ", "return not "), ("0", "1"), ("not ", ""))


def states(provider: Provider, instance: Instance, base: Snapshot, edits: int) -> Iterator[tuple[str, Snapshot]]:
    """The states to measure: the base, the known patch, and edits."""
    yield "base", base
    patched, _ = apply_patch(provider, base, instance.hidden.patch)
    if patched is not None:
        yield "patch", patched
    rng = Random(instance.id)
    paths = [patch.path for patch in parse(instance.hidden.patch) if patch.path.endswith(".py")]
    for number in range(edits if paths else 0):
        with provider.at(base) as box:
            path = rng.choice(paths)
            box.write(path, edited(box.read(path).decode(), rng).encode())
            yield f"edit {number}", box.snapshot()


def edited(text: str, rng: Random) -> str:
    """The text with one random line changed."""
    lines = text.split("\n")
    choices = [(number, old, new) for number, line in enumerate(lines) for old, new in SWAPS if old in line]
    number, old, new = rng.choice(choices)
    lines[number] = lines[number].replace(old, new, 1)
    return "\n".join(lines)


def differences(one: SuiteReport, other: SuiteReport) -> list[str]:
    """The tests that ended differently."""
    ids = dict.fromkeys([*one.outcomes, *other.outcomes])
    return [test for test in ids if one.outcomes.get(test) is not other.outcomes.get(test)]


class Comparison:
    """Compares both ways on one instance."""

    def __init__(self, provider: Provider, task: Task, base: Snapshot, rules: Rules) -> None:
        self.provider, self.task, self.base, self.rules = provider, task, base, rules
        self.starts: Counter[str] = Counter()
        self.cold_s: list[float] = []
        self.warm_s: list[float] = []
        self.differing: list[str] = []
        self.flaky: list[str] = []

    def compare(self, name: str, snapshot: Snapshot, tests: tuple[str, ...]) -> None:
        """Measure a state, cold first."""
        cold = self._cold(snapshot, tests)
        warm = copy_run(self.provider, snapshot, self.base, tests, self.rules, session=True)
        self.starts[warm.start] += 1
        self.cold_s.append(cold.duration_s)
        self.warm_s.append(warm.duration_s)
        differing = differences(cold, warm)
        if cold.valid != warm.valid:
            differing.append(f"valid: {cold.problem!r}, {warm.problem!r}")
        if differing:
            again = differences(cold, self._cold(snapshot, tests))
            self.flaky += [test for test in differing if test in again]
            self.differing += [f"{name}: {test}" for test in differing if test not in again]

    def _cold(self, snapshot: Snapshot, tests: tuple[str, ...]) -> SuiteReport:
        return run_suite(self.provider, self.task, snapshot, self.base, tests, self.rules)


def compared(provider: Provider, instance: Instance, edits: int) -> Comparison:
    """Compare all states of an instance, with the goal tests and with the whole suite."""
    base = provider.create(instance.task.workspace)
    baseline = find_baseline(provider, instance.task, base)
    comparison = Comparison(provider, instance.task, base, rules_for(provider, instance.task, base, baseline))
    for name, snapshot in states(provider, instance, base, edits):
        for tests in (instance.task.goal_tests, ()):
            comparison.compare(name, snapshot, tests)
    return comparison


def main() -> int:
    """Print a line for each instance, and the total."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--edits", type=int, default=3)
    parser.add_argument("--only", default="", help="instances whose id contains this")
    given = parser.parse_args()
    total = runs = 0
    with tempfile.TemporaryDirectory() as place:
        source = Bundles(given.source, Path(place, "checkouts"), reveal=True)
        for number, instance in enumerate(source.instances()):
            if given.only not in instance.id:
                continue
            source.prepare(instance)
            with NamespaceProvider(Path(place, f"store-{number}")) as provider:
                done = compared(provider, instance, given.edits)
            total, runs = total + len(done.differing), runs + len(done.cold_s)
            cold, warm = median(done.cold_s) * 1000, median(done.warm_s) * 1000
            print(
                f"{instance.id:48} cold {cold:6.0f} ms  warm {warm:6.0f} ms  {cold / warm:5.1f}x  {dict(done.starts)}  "
                f"{len(done.differing)} differ, {len(done.flaky)} flaky",
                flush=True,
            )
            for line in done.differing:
                print(f"    {line}")
    print(f"{runs} states and test sets measured both ways, {total} differences")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
