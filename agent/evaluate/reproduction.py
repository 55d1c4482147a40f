"""The tests that a state adds of its own: whether they reproduce the issue, and what that is worth.

Law: such a test counts when it fails on the base state, twice, in its own run and not on the way to it, and passes in
the state that added it. It guides a search in which no test fails at the beginning, and decides nothing: no state is
solved by it, and what it adds to a value is less than what the goal tests of a task give.

New test files stay in the patch, as those of a person would: who asked for the patch sees what it was tried with. They
are not part of the suite that a patch has to pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from hashlib import sha256

from agent.actions.excerpt import excerpt
from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of
from agent.measure.messages import error_of, places_of
from agent.measure.protection import TEST_FILES
from agent.measure.results import Results
from agent.measure.suite import Rules, run_restored
from agent.run.tree.evaluation import Evaluation
from agent.task import Task
from sandboxes import Provider, Sandbox, Snapshot

__all__ = ["Finding", "OwnTests", "begun", "found", "valued"]

WORTH = 0.3
"""What a reproduction adds to the value of a state that breaks nothing: a third of what goal tests can give."""
MOST = 0.9
"""As much as an unsolved state is worth at most."""
NOTED = 3
FILE_BYTES = 100_000
"""A larger test file is not read."""
MESSAGE_BYTES = 1_500

_OWN_FAULT = re.compile(r"(?:\w+\.)*(?:ImportError|ModuleNotFoundError|NameError|SyntaxError)\b")


Run = Callable[[], SuiteReport]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the tests that a state added say of it."""

    shown: tuple[str, ...] = ()
    """Those that fail without its change and pass with it."""
    problem: str = ""
    """Why there are none, for whoever wrote them."""
    runs: int = 0
    """Runs of tests that were made to find this out."""


class OwnTests:
    """Runs the tests that states of one task add. Thread-safe.

    `rules` are those of the task's own tests: whatever else decides what tests say is as in the base state.
    """

    def __init__(self, provider: Provider, task: Task, base: Snapshot, rules: Rules) -> None:
        self._provider, self._task, self._base = provider, task, base
        self._rules = replace(rules, limits=replace(rules.limits, timeouts=1), by_path=True)
        self._results = Results()

    def files(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The test files that the state has and the base has not, sorted."""
        added = (change.path for change in self._provider.changes(self._base, snapshot) if change.kind == "added")
        names = ((path, path.rpartition("/")[2]) for path in added)
        return tuple(path for path, name in names if any(fnmatch(name, pattern) for pattern in TEST_FILES))

    def run(
        self, snapshot: Snapshot, tests: Sequence[str], *, changed: bool = True, again: bool = False
    ) -> tuple[SuiteReport, bool]:
        """How these tests end in the state, its own among them, and whether they had to be run for it. Not `changed`:
        how they end in the base state with the state's test files and nothing else of it. `again`: the second time."""
        own = self.files(snapshot)
        covers = self._rules.protection.covers
        changes = [each for each in self._provider.changes(self._base, snapshot) if each.path not in own]
        put_back = [each.path for each in changes if not changed or covers(each)]
        where = snapshot.digest if changed else self._content(snapshot, own)
        return self._results.find(
            (where, *tests, *(("again",) if again else ())),
            lambda: run_restored(self._provider, self._task, snapshot, self._base, put_back, tests, self._rules),
        )

    def on(self, snapshot: Snapshot, tests: Mapping[str, bytes]) -> SuiteReport:
        """How the test files of another state end in this one, without the tests that it adds itself. Run each time."""
        changes = self._provider.changes(self._base, snapshot)
        put_back = [each.path for each in changes if self._rules.protection.covers(each)]
        return run_restored(
            self._provider, self._task, snapshot, self._base, put_back, tuple(tests), self._rules, tests
        )

    def contents(self, snapshot: Snapshot, paths: Iterable[str]) -> dict[str, bytes]:
        """What is in these files of the state; what cannot be read (a link to nothing, a large file) is left out."""
        with self._provider.at(snapshot) as box:
            found = {path: _text(box, path) for path in paths}
        return {path: text for path, text in found.items() if text is not None}

    def placed(self, snapshot: Snapshot, path: str) -> str:
        """The path of a file relative to the workspace; empty where there is no such file in it."""
        with self._provider.at(snapshot) as box:
            inside = path.removeprefix(f"{box.workdir.rstrip('/')}/")
            there = not inside.startswith("/") and box.exec(["test", "-f", inside], timeout_s=60).exit_code == 0
        return inside if there else ""

    def edited(self, snapshot: Snapshot) -> frozenset[str]:
        """The files that are in the base too, and that the state has changed."""
        return frozenset(c.path for c in self._provider.changes(self._base, snapshot) if c.kind == "modified")

    def look(self, snapshot: Snapshot) -> Finding | None:
        """What the state's own tests say; None when it has none."""
        own = self.files(snapshot)
        if not own:
            return None
        made = list[bool]()

        def run(*, changed: bool = True, again: bool = False) -> SuiteReport:
            report, ran = self.run(snapshot, own, changed=changed, again=again)
            made.append(ran)
            return report

        finding = found(partial(run, changed=False), run, partial(run, changed=False, again=True))
        return replace(finding, runs=sum(made))

    def _content(self, snapshot: Snapshot, own: Sequence[str]) -> str:
        """What tells the state's test files from others; one that cannot be read is like no other state's."""
        contents = self.contents(snapshot, own)
        return sha256(repr([(path, contents.get(path, snapshot.digest)) for path in own]).encode()).hexdigest()


def found(before: Run, after: Run, once_more: Run) -> Finding:
    """What tests say that were run on the unchanged code, with the change, and on the unchanged code once more: each
    only where the runs before it leave something to be found."""
    first = before()
    failing = _failures(first)
    if not failing:
        return Finding(problem=_no_failure(first))
    changed = after()
    if still := [test for test in failing if not changed.passed(test)]:
        why = excerpt(changed.messages.get(still[0], changed.problem), MESSAGE_BYTES)[0]
        return Finding(problem=f"{still[0]} fails with your change as it does without:\n{why}")
    second = _failures(once_more())
    if unsteady := [test for test in failing if test not in second]:
        return Finding(problem=f"{unsteady[0]} failed on the unchanged code and then did not: make it fail each time")
    return Finding(tuple(failing))


def valued(evaluation: Evaluation, finding: Finding | None) -> Evaluation:
    """The evaluation of a state with this finding: never solved by it, and never worth less."""
    if finding is None or evaluation.solved:
        return evaluation
    worth = WORTH * (1.0 - evaluation.harm) if finding.shown else 0.0
    shown = ", ".join(finding.shown[:NOTED])
    note = f"Your own test reproduces the issue, and passes with your change: {shown}" if shown else finding.problem
    return replace(
        evaluation,
        value=max(evaluation.value, min(MOST, evaluation.value + worth)),
        parts={**evaluation.parts, "reproduction": float(bool(finding.shown))},
        notes=f"{evaluation.notes}\n{note}".strip(),
        reproduced_by=finding.shown,
    )


def begun(report: SuiteReport, test: str) -> bool:
    """Whether a failure is one of what was tested, and not of an import or a name in the test itself."""
    message = report.messages.get(test, "")
    places = places_of(message)
    raised_there = bool(places) and places[-1][0].endswith(file_of(test))
    return not (raised_there and _OWN_FAULT.match(error_of(message)))


def _text(box: Sandbox, path: str) -> bytes | None:
    try:
        return box.read(path, max_bytes=FILE_BYTES)
    except OSError:
        return None


def _failures(report: SuiteReport) -> list[str]:
    """The tests that fail as a reproduction does."""
    failed = (test for test, outcome in report.outcomes.items() if outcome is Outcome.FAILED)
    return [test for test in failed if report.valid and begun(report, test)]


def _no_failure(before: SuiteReport) -> str:
    """Why none of a state's own tests fails on the base state as a reproduction does."""
    broken = [
        test for test in before.failures if before.outcomes[test] is not Outcome.FAILED or not begun(before, test)
    ]
    if broken:
        why = excerpt(before.messages.get(broken[0], ""), MESSAGE_BYTES)[0]
        return (
            f"{broken[0]} does not get as far as to fail on the unchanged code, so that it says nothing of it:\n{why}"
        )
    if not before.valid:
        run = f". What was run: {before.command}" if before.command else ""
        return f"Your own tests cannot be run on the unchanged code: {before.problem}{run}"
    files = ", ".join(dict.fromkeys(map(file_of, before.outcomes)))
    return f"{files or 'your own test file'} passes without your change too: it does not show what the issue describes"
