"""Tests that a state adds: whether they reproduce the issue, and what that is worth.

Law: such a test counts if it fails twice on the base state, in the tested code and not before it is reached, and passes
in the state that added it. It guides a search in which no test fails at first, and decides nothing: no state is solved
by it, and it adds less to a value than goal tests do.

New test files stay in the patch, as a person's would, so that the user sees how the patch was tried. They are not part
of the suite that a patch has to pass.
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
"""What a reproduction adds to the value of a state that breaks nothing: a third of what goal tests can add."""
MOST = 0.9
"""The highest value of an unsolved state."""
NOTED = 3
FILE_BYTES = 100_000
"""A larger test file is not read."""
MESSAGE_BYTES = 1_500

_OWN_FAULT = re.compile(r"(?:\w+\.)*(?:ImportError|ModuleNotFoundError|NameError|SyntaxError)\b")

Run = Callable[[], SuiteReport]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the tests that a state added."""

    shown: tuple[str, ...] = ()
    """The tests that fail without the state's change and pass with it."""
    problem: str = ""
    """Why there are none, for the author of the tests."""
    runs: int = 0
    """Test runs that this took."""


class OwnTests:
    """Runs the tests that states of one task add. Thread-safe.

    `rules` are those of the task's own tests: everything else that decides test results is as in the base state.
    """

    def __init__(self, provider: Provider, task: Task, base: Snapshot, rules: Rules) -> None:
        self._provider, self._task, self._base = provider, task, base
        self._rules = replace(rules, limits=replace(rules.limits, timeouts=1), by_path=True)
        self._results = Results()

    def files(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The test files that the state has and the base does not have, sorted."""
        added = (change.path for change in self._provider.changes(self._base, snapshot) if change.kind == "added")
        names = ((path, path.rpartition("/")[2]) for path in added)
        return tuple(path for path, name in names if any(fnmatch(name, pattern) for pattern in TEST_FILES))

    def is_test(self, path: str) -> bool:
        """Whether the file is a test or is among tests."""
        return self._rules.protection.is_test(path)

    def run(
        self, snapshot: Snapshot, tests: Sequence[str], *, changed: bool = True, again: bool = False
    ) -> tuple[SuiteReport, bool]:
        """The results of these tests in the state, and whether they had to be run. Without `changed`: their results in
        the base state with only the state's new test files added. `again` asks for a second, separate run."""
        own = self.files(snapshot)
        covers = self._rules.protection.covers
        changes = [change for change in self._provider.changes(self._base, snapshot) if change.path not in own]
        put_back = [change.path for change in changes if not changed or covers(change)]
        where = snapshot.digest if changed else self._digest(snapshot, own)
        return self._results.find(
            (where, *tests, *(("again",) if again else ())),
            lambda: run_restored(self._provider, self._task, snapshot, self._base, put_back, tests, self._rules),
        )

    def on(self, snapshot: Snapshot, tests: Mapping[str, bytes]) -> SuiteReport:
        """The results of another state's test files in this state without its own new tests. Not cached."""
        changes = self._provider.changes(self._base, snapshot)
        put_back = [change.path for change in changes if self._rules.protection.covers(change)]
        return run_restored(
            self._provider, self._task, snapshot, self._base, put_back, tuple(tests), self._rules, tests
        )

    def contents(self, snapshot: Snapshot, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files of the state. Unreadable files (dangling links, large files) are omitted."""
        with self._provider.at(snapshot) as box:
            contents = {path: _content(box, path) for path in paths}
        return {path: content for path, content in contents.items() if content is not None}

    def placed(self, snapshot: Snapshot, path: str) -> str:
        """The path of a file relative to the workspace; empty if the workspace has no such file."""
        with self._provider.at(snapshot) as box:
            inside = path.removeprefix(f"{box.workdir.rstrip('/')}/")
            exists = not inside.startswith("/") and box.exec(["test", "-f", inside], timeout_s=60).exit_code == 0
        return inside if exists else ""

    def edited(self, snapshot: Snapshot) -> frozenset[str]:
        """The files of the base that the state has changed."""
        return frozenset(c.path for c in self._provider.changes(self._base, snapshot) if c.kind == "modified")

    def look(self, snapshot: Snapshot) -> Finding | None:
        """The finding from the state's own tests; None if it has none."""
        own = self.files(snapshot)
        if not own:
            return None
        runs = 0

        def run(*, changed: bool = True, again: bool = False) -> SuiteReport:
            nonlocal runs
            report, ran = self.run(snapshot, own, changed=changed, again=again)
            runs += ran
            return report

        finding = found(partial(run, changed=False), run, partial(run, changed=False, again=True))
        return replace(finding, runs=runs)

    def _digest(self, snapshot: Snapshot, own: Sequence[str]) -> str:
        """A digest of the state's own test files. A file that cannot be read is unlike that of any other state."""
        contents = self.contents(snapshot, own)
        return sha256(repr([(path, contents.get(path, snapshot.digest)) for path in own]).encode()).hexdigest()


def found(before: Run, after: Run, once_more: Run) -> Finding:
    """The finding from test runs on the unchanged code, with the change, and on the unchanged code once more. Each run
    is made only if the runs before it have not decided the result."""
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
    """The evaluation of a state with this finding, which may raise the value but never solves the state."""
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
    """Whether a failure comes from the tested code, not from an import or a name in the test itself."""
    message = report.messages.get(test, "")
    places = places_of(message)
    raised_there = bool(places) and places[-1][0].endswith(file_of(test))
    return not (raised_there and _OWN_FAULT.match(error_of(message)))


def _content(box: Sandbox, path: str) -> bytes | None:
    try:
        return box.read(path, max_bytes=FILE_BYTES)
    except OSError:
        return None


def _failures(report: SuiteReport) -> list[str]:
    """The tests that fail in the way a reproduction fails."""
    failed = (test for test, outcome in report.outcomes.items() if outcome is Outcome.FAILED)
    return [test for test in failed if report.valid and begun(report, test)]


def _no_failure(before: SuiteReport) -> str:
    """The problem of a state none of whose own tests fails on the base state in the way a reproduction fails."""
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
