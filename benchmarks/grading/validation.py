"""Checks that an instance can be graded here: the reference solution is resolved, and the base state is not."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from agent.counting import counted, first_of
from agent.errors import RamifyError
from agent.measure import SuiteReport
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source
from benchmarks.grading.evidence import Archive
from benchmarks.grading.grading import examine
from benchmarks.grading.verdicts import Finding, Verdict, decide, full_ids
from sandboxes import Provider, SandboxError
from sandboxes.forking.shell import run_script

SHOWN = 5
"""The largest number of tests that a line names."""
_SOLVE_S = 1800


@dataclass(frozen=True, slots=True)
class Check:
    """The results of the hidden tests on an instance's reference solution and on its base state."""

    instance_id: str
    gold: str | None
    """Why the reference solution is not resolved; empty if it is; None if the set has no solution."""
    empty: str
    """What is wrong with the base state; empty if nothing is."""

    @property
    def valid(self) -> bool:
        """Whether the instance can be used to judge a patch."""
        return not self.gold and not self.empty


def check(instance: Instance, source: Source, provider: Provider, archive: Archive | None = None) -> Check:
    """Grade the reference solution, run the hidden tests without it, and keep the evidence of both."""
    gold = _gold_fault(instance, source, provider, archive)
    finding, empty = _tested(instance, b"", source, provider, archive)
    if finding.report is None or (gold is None and not finding.report.valid):
        return Check(instance.id, gold, empty.reason)  # it is not known whether the tests can be run here at all
    return Check(instance.id, gold, _base_fault(instance, empty.failing, empty.broken))


def _tested(
    instance: Instance, patch: bytes, source: Source, provider: Provider, archive: Archive | None
) -> tuple[Finding, Verdict]:
    """Run the hidden tests on a patch, which may be empty, and derive the verdict."""
    finding = examine(instance, patch, source, provider)
    verdict = decide(instance.id, patch, instance.hidden, finding)
    if archive is not None:
        archive.keep(instance, patch, finding, verdict)
    return finding, verdict


def _gold_fault(instance: Instance, source: Source, provider: Provider, archive: Archive | None) -> str | None:
    patch = instance.hidden.patch
    if instance.hidden.solution:
        try:
            patch = _solution(instance, source, provider)
        except (RamifyError, SandboxError) as error:
            return str(error)
        if not patch:
            place = instance.task.workspace.mount or "the working directory of its image"
            return f"the set's solution changes nothing in {place}, and a patch can hold no other changes"
    elif not patch:
        return None
    finding, verdict = _tested(instance, patch, source, provider, archive)
    failed = (*verdict.failing, *verdict.broken)
    if not failed or finding.report is None or not finding.report.valid or instance.hidden.outcomes:
        return verdict.reason
    shown = [_explained(test, finding.report) for test in failed[:SHOWN]]
    return f"{verdict.reason}: {first_of([*shown, *failed[SHOWN:]], SHOWN)}"


def _explained(test: str, report: SuiteReport) -> str:
    """A test that did not pass. If no test with this name was run, the most similar name is added."""
    if full_ids(test, report):
        return test
    near = get_close_matches(test, report.outcomes, n=1)
    return f"{test} (no such test was run{f'; did you mean {near[0]}?' if near else ''})"


def _solution(instance: Instance, source: Source, provider: Provider) -> bytes:
    """The patch of the changes that the set's own command makes to the base state."""
    source.prepare(instance)
    base = provider.create(instance.task.workspace)
    states = [base]
    try:
        with provider.at(base) as box:
            run_script(box, instance.hidden.solution, timeout_s=_SOLVE_S, by="/bin/bash")
            states.append(after := box.snapshot())
        return provider.diff(base, after)
    finally:
        for state in dict.fromkeys(states):
            provider.discard(state)


def _base_fault(instance: Instance, failing: tuple[str, ...], broken: tuple[str, ...]) -> str:
    if instance.hidden.outcomes:
        return "" if failing else "every test ends as it has to without a patch"
    passing = [test for test in instance.hidden.fail_to_pass if test not in failing]
    early = counted(
        len(passing), "test of FAIL_TO_PASS passes without a patch", "tests of FAIL_TO_PASS pass without a patch"
    )
    late = counted(
        len(broken), "test of PASS_TO_PASS fails without a patch", "tests of PASS_TO_PASS fail without a patch"
    )
    return "; ".join(f"{what}: {first_of(tests, SHOWN)}" for what, tests in ((early, passing), (late, broken)) if tests)
