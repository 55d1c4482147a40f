"""Own tests: the tests that a state adds, run on the base state, on the state, and on the states of others.

New test files stay in the patch, as a person's would, so that the user sees how the patch was tested. Tests added to an
existing file stay too: the file is run as it is in the state. None of these tests is part of the suite that a patch has
to pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

from agent.evaluate.reproduction import Finding, Reader
from agent.measure import SuiteReport
from agent.measure.adapters.registry import OF_PYTHON, adapter_of
from agent.measure.ids import file_of
from agent.measure.protection import BUILT, TEST_FILES, matches
from agent.measure.results import Results
from agent.measure.suite import Rules, run_restored
from agent.task import Task
from sandboxes import Change, Provider, Sandbox, Snapshot

FILE_BYTES = 100_000
"""A larger test file is not read."""


class OwnTests:
    """Runs the tests that states of one task add. Thread-safe.

    `rules` are those of the task's own tests: everything else that decides test results is as in the base state.
    """

    def __init__(self, provider: Provider, task: Task, base: Snapshot, baseline: SuiteReport, rules: Rules) -> None:
        self._provider, self._task, self._base = provider, task, base
        self._rules = replace(rules, limits=replace(rules.limits, timeouts=1), by_path=True)
        self._by_file = rules.adapter in OF_PYTHON
        self._results = Results()
        self.reader = Reader(task.statement, baseline)
        self.can_run = baseline.adapter != "exit-code" and (self._by_file or not baseline.late)
        """Whether the runner reports each test, and runs new files by themselves or else in a short suite."""

    def files(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The test files that the state adds or changes, sorted."""
        return self._test_files(self._provider.changes(self._base, snapshot))

    def is_test(self, path: str) -> bool:
        """Whether the file is a test or is among tests."""
        return self._rules.protection.is_test(path)

    def run(
        self, snapshot: Snapshot, tests: Sequence[str], *, changed: bool = True, again: bool = False
    ) -> tuple[SuiteReport, bool]:
        """The results of these tests in the state, and whether they had to be run. Without `changed`: their results in
        the base state with only the state's own tests added. `again` asks for a second, separate run."""
        changes = self._provider.changes(self._base, snapshot)
        own = self._test_files(changes)
        kept = {*own, *(change.path for change in changes if self._helps(change))}
        covers = self._rules.protection.covers
        put_back = [change.path for change in changes if change.path not in kept and (not changed or covers(change))]
        where = snapshot.digest if changed else self._digest(snapshot, sorted(kept))
        return self._results.find(
            (where, *tests, *(("again",) if again else ())),
            lambda: run_restored(
                self._provider, self._task, snapshot, self._base, put_back, self._wanted(tests), self._rules
            ),
        )

    def on(self, snapshot: Snapshot, tests: Mapping[str, bytes]) -> SuiteReport:
        """The results of another state's test files in this state without its own tests. Not cached."""
        changes = self._provider.changes(self._base, snapshot)
        put_back = [change.path for change in changes if self._rules.protection.covers(change)]
        wanted = self._wanted(tuple(tests))
        return run_restored(self._provider, self._task, snapshot, self._base, put_back, wanted, self._rules, tests)

    def added(self, report: SuiteReport, files: Mapping[str, bytes]) -> list[str]:
        """The tests of a report that come from these files; if ids do not name files, those that are new."""
        known = self.reader.baseline.outcomes
        return [test for test in report.outcomes if (file_of(test) in files if self._by_file else test not in known)]

    def contents(self, snapshot: Snapshot, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files of the state. Unreadable files (dangling links, large files) are omitted."""
        with self._provider.at(snapshot) as box:
            contents = {path: _content(box, path) for path in paths}
        return {path: content for path, content in contents.items() if content is not None}

    def path_in_workspace(self, snapshot: Snapshot, path: str) -> str:
        """The path of a file relative to the workspace; empty if the workspace has no such file."""
        with self._provider.at(snapshot) as box:
            inside = path.removeprefix(f"{box.workdir.rstrip('/')}/")
            exists = not inside.startswith("/") and box.exec(["test", "-f", inside], timeout_s=60).exit_code == 0
        return inside if exists else ""

    def look(self, snapshot: Snapshot) -> Finding | None:
        """The finding from the state's own tests; None if it has none."""
        changes = self._provider.changes(self._base, snapshot)
        own = self._test_files(changes)
        if not own:
            return None
        others = [c for c in changes if not (c.path in own or c.in_git or self._helps(c) or matches(c.path, BUILT))]
        runs = 0

        def run(*, changed: bool = True, again: bool = False) -> SuiteReport:
            nonlocal runs
            report, ran = self.run(snapshot, own, changed=changed, again=again)
            runs += ran
            return report

        finding = self.reader.found(
            partial(run, changed=False),
            run if others else None,
            partial(run, changed=False, again=True),
            tried=any(change.kind != "added" for change in others),
        )
        return replace(finding, runs=runs)

    def _test_files(self, changes: Iterable[Change]) -> tuple[str, ...]:
        adapter = adapter_of(self._rules.adapter)
        patterns = TEST_FILES if self._by_file or adapter is None else adapter.tests
        known = self._rules.protection.test_files
        return tuple(
            change.path
            for change in changes
            if change.kind != "removed"
            and (matches(change.path, patterns) or (change.kind == "modified" and change.path in known))
            and not self._rules.protection.configures(change)
        )

    def _helps(self, change: Change) -> bool:
        """Whether the change is test data or a helper: it is in a folder of tests, and configures nothing."""
        protection = self._rules.protection
        return change.kind != "removed" and protection.is_test(change.path) and not protection.configures(change)

    def _wanted(self, tests: Sequence[str]) -> Sequence[str]:
        """The tests to pass to the runner; empty, for all tests, if the runner does not find new files by their
        paths."""
        return tests if self._by_file else ()

    def _digest(self, snapshot: Snapshot, kept: Sequence[str]) -> str:
        """A digest of these files of the state. A file that cannot be read counts as different in every state."""
        contents = self.contents(snapshot, kept)
        return sha256(repr([(path, contents.get(path, snapshot.digest)) for path in kept]).encode()).hexdigest()


def _content(box: Sandbox, path: str) -> bytes | None:
    try:
        return box.read(path, max_bytes=FILE_BYTES)
    except OSError:
        return None
