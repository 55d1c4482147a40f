"""Planted bugs in a large repository: how long it takes to measure the base state and the fixed states by scopes, and
whether the tests that a fix repairs are in its scope.

    python -m benchmarks.perf.planted --repo DIR --test COMMAND --require PACKAGE==VERSION BRANCH=FIX.patch...

Each branch of the repository has a bug, and the patch repairs it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from agent.evaluate.verification import apply_patch
from agent.measure import SuiteReport
from agent.measure.adapters.registry import choose
from agent.measure.comparison import compare
from agent.measure.ids import file_of
from agent.measure.measurer import Measurer, find_baseline
from agent.measure.suite import GENEROUS, run_suite
from agent.measure.timing import Timing
from agent.task import Task
from benchmarks.data.sources.bundles import workspace_of
from benchmarks.perf.script import machine
from sandboxes import Provider, Snapshot
from sandboxes.namespace.provider import namespace_provider

MORE_STATES = 7
"""States that are measured in addition to the fix; each adds a comment to a file that the fix changes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each bug."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--test", required=True, help="the command that runs all tests")
    parser.add_argument("--require", action="append", default=[], help="a package that the tests need")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--final-s", type=float, default=0.0, help="seconds for a run of all tests at the end")
    parser.add_argument("--within", metavar="FOLDER", help="in the end run all tests below it with the bug")
    parser.add_argument("bugs", nargs="+", metavar="BRANCH=PATCH")
    given = parser.parse_args(arguments)
    timing = Timing(jobs=given.jobs, final_s=given.final_s)
    for bug in given.bugs:
        branch, _, patch = bug.partition("=")
        with tempfile.TemporaryDirectory() as place, namespace_provider(Path(place, "store")) as provider:
            repo = Path(place, "repo")
            clone = ["git", "clone", "-q", "--branch", branch, str(given.repo.absolute()), str(repo)]
            subprocess.run(clone, check=True)
            framework, command = choose(repo, given.test, None)
            task = Task(bug, "", workspace_of(repo, given.require), command, framework=framework)
            _measure(provider, task, branch, Path(patch).read_bytes(), timing, given.within)
    print(f"{machine()}, load {os.getloadavg()[1]:.1f}")


def _measure(
    provider: Provider, task: Task, branch: str, patch: bytes, timing: Timing, within: str | None = None
) -> None:
    base = provider.create(replace(task.workspace, byte_code=True))
    began = time.monotonic()
    baseline = find_baseline(provider, task, base, timing=timing)
    baseline_s = time.monotonic() - began
    measurer = Measurer(provider, task, base, baseline, timing=timing)
    fixed, why = apply_patch(provider, base, patch)
    if fixed is None:
        raise SystemExit(f"{branch}: {why}")
    seconds, reports = [], []
    for state in (fixed, *(_commented(provider, base, fixed, n) for n in range(MORE_STATES))):
        began = time.monotonic()
        report = measurer.measure(state)
        seconds.append(time.monotonic() - began)
        reports.append(report)
    repaired = [compare(measurer.baseline.report, each).fixed for each in reports]
    late = sum(baseline.late.values())
    print(f"{branch}: base {baseline_s:.0f} s ({baseline.adapter}, {len(baseline.outcomes):,} run, {late:,} late)")
    for state_s, report, tests in zip(seconds, reports, repaired, strict=True):
        took = f"{state_s:.1f} s, {report.duration_s:.1f} s of them its tests ({report.start})"
        print(f"    {took}, {len(tests)} repaired; {report.scope}")
    print(f"    median {median(seconds):.1f} s", flush=True)
    if not report.valid:
        print(f"    not valid: {report.problem}")
    for test in repaired[-1]:
        print(f"    repaired: {test}", flush=True)
    if broken := compare(measurer.baseline.report, report).newly_broken:
        print(f"    broken: {', '.join(broken)}")
    if within is not None and timing.final_s:
        _compare_all(provider, task, measurer, base, fixed, report, within, timing.final_s)
    elif timing.final_s:
        began = time.monotonic()
        whole, _ = measurer.check(fixed, (), timing.final_s)
        compared = compare(measurer.baseline.report, whole)
        print(
            f"    in the end {time.monotonic() - began:.0f} s: {len(compared.newly_broken)} broken, "
            f"{len(compared.fixed)} repaired; {whole.scope or 'all tests'}",
            flush=True,
        )


def _compare_all(
    provider: Provider,
    task: Task,
    measurer: Measurer,
    base: Snapshot,
    fixed: Snapshot,
    report: SuiteReport,
    within: str,
    limit_s: float,
) -> None:
    """Print which of all tests below a folder the bug breaks: those that fail with it and not without it. `report` is
    the fix's report by its scope."""
    known = measurer.baseline.report
    files = {file_of(test) for test in (*known.outcomes, *known.late)}
    tests = sorted(file for file in files if file.startswith(within))
    rules = replace(measurer.rules, limits=replace(GENEROUS, run_s=limit_s))
    began = time.monotonic()
    wrong = run_suite(provider, task, base, base, tests, rules)
    seconds = time.monotonic() - began
    right = run_suite(provider, task, fixed, base, wrong.failures, rules) if wrong.failures else SuiteReport(valid=True)
    broken = compare(wrong, right).fixed
    outside = [test for test in broken if test not in report.outcomes]
    print(
        f"    all of {within or 'the suite'}: {len(wrong.outcomes):,} run, {sum(wrong.late.values()):,} late, "
        f"in {seconds:.0f} s; the bug breaks {len(broken)}, {len(broken) - len(outside)} of them in the scope; "
        f"{len(right.failures)} fail also without it; not in the scope: {', '.join(outside[:5])}",
        flush=True,
    )


def _commented(provider: Provider, base: Snapshot, fixed: Snapshot, number: int) -> Snapshot:
    path = next(change.path for change in provider.changes(base, fixed) if change.path.endswith(".py"))
    with provider.at(fixed) as box:
        box.write(path, box.read(path) + f"\n# {number}\n".encode())
        return box.snapshot()


if __name__ == "__main__":
    main()
