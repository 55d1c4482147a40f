"""Choose the tests that measure a state (its scope) if all tests would take too long.

A scope is chosen without running anything: by what each test executed in the base state if that is known, else by
imports and names (`agent.measure.scopes.related`). It consists of test files, nearest first, up to an estimated time.
If a file takes too long, only some of its functions are included, those about the change first
(`agent.measure.scopes.functions`).

Invariant: within one process a state keeps its scope.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.counting import first_of
from agent.measure import SuiteReport
from agent.measure.adapters.registry import OF_PYTHON
from agent.measure.baseline import Baseline
from agent.measure.diffs import parse
from agent.measure.ids import file_of, holds
from agent.measure.probing.spectrum import Spectrum, affected
from agent.measure.protection import Protection
from agent.measure.scopes.changed import FileChange, file_change
from agent.measure.scopes.durations import Durations
from agent.measure.scopes.functions import most_relevant_first
from agent.measure.scopes.index import Index, read_index
from agent.measure.scopes.related import related
from agent.measure.timing import Timing
from sandboxes import Change, Provider, Sandbox, SandboxError, Snapshot

log = logging.getLogger(__name__)

ESTIMATED = 1 / 6
"""Share of a scope's time limit that its run may take by estimate. It is low because estimates can be wrong."""
LEAST = 0.6
"""The least share of that time that the tests get, however long the rest of a run takes."""
PART = 0.7
"""Share of the time left that a part of a long file may take, so that other files have their turn."""
FEW = 5
"""Only the nearest file may be included with fewer tests than this, since reading a file takes time, too."""
SOURCE_BYTES = 2_000_000
"""Larger sources are compared by name alone."""
NAMED = 3
TEXT = frozenset({"rst", "md", "txt"})
DOCUMENTATION = frozenset({"doc", "docs", "newsfragments"})
CHANGE_LOGS = frozenset({"changes", "changelog", "history", "news", "whats-new", "whats_new"})


def can_select(adapter: str) -> bool:
    """Whether the adapter can run single files of Python tests."""
    return adapter in OF_PYTHON


def by_scopes(baseline: SuiteReport, timing: Timing) -> bool:
    """Whether states are measured by scopes: all tests take too long to run in every state, and the runner can
    select."""
    return can_select(baseline.adapter) and (bool(baseline.late) or baseline.duration_s > timing.every_s)


def state_s(baseline: SuiteReport, timing: Timing) -> float:
    """The most seconds that measuring a state should take; a scope may have to run in the base state too."""
    return min(baseline.duration_s, 2 * timing.scope_s) if by_scopes(baseline, timing) else baseline.duration_s


@dataclass(frozen=True, slots=True)
class Scope:
    """The tests that measure a state."""

    tests: tuple[str, ...]
    """Test files, and test functions of files that are too long; nearest first. Empty if the change reaches none."""
    why: str
    """Which tests these are, for people."""

    def describe(self, report: SuiteReport, baseline: SuiteReport) -> str:
        """Describe, for people, which tests a report of this scope is based on."""
        run, listed = _by_file(report.outcomes), _by_file(baseline.outcomes) + Counter(baseline.late)
        total = f"{'about ' if baseline.late else ''}{max(listed.total(), run.total()):,}"
        parts = [
            f"{run[file]:,} of {'about ' if file in baseline.late else ''}{listed[file]:,} tests of `{file}`"
            for file in _by_file(test for test in self.tests if "::" in test)
        ]
        more = f", with {first_of(parts, NAMED)}" if parts else ""
        return f"{run.total():,} of {total} tests: {self.why}{more}"


class Scopes:
    """Chooses the tests of the states of one task. Thread-safe.

    `spectrum` returns what each test executed in the base state if that is known or cheap to find, else an empty
    spectrum.
    """

    def __init__(
        self,
        provider: Provider,
        base: Snapshot,
        baseline: Baseline,
        protection: Protection,
        timing: Timing,
        spectrum: Callable[[], Spectrum] = Spectrum,
    ) -> None:
        self._provider, self._base, self._baseline = provider, base, baseline
        self._protection, self._timing, self._spectrum = protection, timing, spectrum
        self._lock = threading.Lock()
        self._known: dict[str, Scope] = {}
        self._overhead_s = 0.0
        self._reading = threading.Lock()
        self._index: Index | None = None

    def of(self, snapshot: Snapshot) -> Scope:
        """The scope of a state."""
        with self._lock:
            if snapshot.digest not in self._known:
                self._known[snapshot.digest] = self._chosen(snapshot)
            return self._known[snapshot.digest]

    def learn(self, report: SuiteReport) -> None:
        """Learn how much time a run takes besides its tests (to start, and to set up what tests share, such as
        databases). Later scopes leave that much less time for their tests."""
        self._overhead_s = max(0.0, report.duration_s - sum(report.durations.values()) / self._timing.jobs)

    def prepare(self) -> None:
        """Start reading the sources of the base state in a separate thread: that takes seconds, and nobody waits for it
        yet."""
        threading.Thread(target=self._prepare, daemon=True).start()

    def _prepare(self) -> None:
        try:
            _ = self.index
        except (SandboxError, OSError, ValueError) as error:  # the run may be over; a later use tries again
            log.debug("the sources of the base state were not read: %s", error)

    @property
    def index(self) -> Index:
        """The imports and definitions of the base state's sources."""
        with self._reading:
            if self._index is None:
                with self._provider.at(self._base) as box:
                    self._index = read_index(box)
                if self._index.problem:
                    log.info("choosing tests without some of the imports: %s", self._index.problem)
            return self._index

    def test_files(self) -> tuple[str, ...]:
        """All known test files; before any run reported one, the files named like tests."""
        report = self._baseline.report
        reported = dict.fromkeys([*map(file_of, report.outcomes), *report.late])
        return tuple(reported) or tuple(path for path in self.index.files if self._protection.is_test(path))

    def _chosen(self, snapshot: Snapshot) -> Scope:
        changes = tuple(each for each in self._provider.changes(self._base, snapshot) if self._counts(each))
        if not changes:
            return Scope((), "no source file has changed")
        changed = self._changed(snapshot, changes)
        near = self._by_coverage(snapshot, tuple(changed)) or self._by_imports(changed)
        tests = tuple(self._filled(near, changed))
        listed = first_of([f"`{path}`" for path in changed], NAMED)
        which = "those that reach" if tests == tuple(near) else "those that best reach"
        return Scope(tests, f"{which if tests else 'none reaches'} {listed}")

    def _counts(self, change: Change) -> bool:
        """Whether tests can see the change: protected files are restored, git's own are not part of a patch, and pages
        of documentation are left to the run of all tests, unless some of them are tests."""
        if self._protection.covers(change) or ".git" in change.path.split("/"):
            return False
        return not _is_page(change.path) or any(_is_page(path) for path in self.test_files())

    def _changed(self, snapshot: Snapshot, changes: Sequence[Change]) -> dict[str, FileChange]:
        """What each change is about, by path."""
        with self._provider.at(self._base) as box:
            before = dict(_texts(box, (each.path for each in changes if each.kind != "added")))
        with self._provider.at(snapshot) as box:
            after = dict(_texts(box, (each.path for each in changes if each.kind != "removed")))
        return {each.path: file_change(each.path, before.get(each.path), after.get(each.path)) for each in changes}

    def _by_coverage(self, snapshot: Snapshot, paths: Sequence[str]) -> dict[str, list[str]]:
        """The tests that executed changed lines, by file; none if a changed file was executed by no test."""
        spectrum = self._spectrum()
        executed = {path for lines in spectrum.executed.values() for path in lines} | set(spectrum.imported)
        if not all(path in executed for path in paths):
            return {}
        hit = affected(spectrum, parse(self._provider.diff(self._base, snapshot)))
        near: dict[str, list[str]] = {}
        for test in spectrum.outcomes:
            if test in hit:
                near.setdefault(file_of(test), []).append(test)
        return near

    def _by_imports(self, changed: Mapping[str, FileChange]) -> dict[str, list[str]]:
        """The test files that can reach the changes, nearest first. No tests are listed for them, because any of their
        tests may do so."""
        return {each.file: [] for each in related(self.index, changed, self.test_files())}

    def _filled(self, near: Mapping[str, Sequence[str]], changed: Mapping[str, FileChange]) -> Iterator[str]:
        """Yield the files that fit into the estimated time, in order, and functions of files that do not fit. If no
        part of the nearest file fits, that file is included as a whole."""
        run_s = ESTIMATED * self._timing.scope_s
        left_s = max(run_s - self._overhead_s, LEAST * run_s) * self._timing.jobs
        durations = Durations(self._baseline.report)
        for number, (file, reaching) in enumerate(near.items()):
            nearest, taken = number == 0, {file: durations.of_file(file)}
            if taken[file] > left_s:
                limit_s = PART * left_s
                worth_it = nearest or FEW * durations.of_test(file) <= limit_s
                part = self._part(file, reaching, changed, durations, limit_s) if worth_it else {}
                taken = part or (taken if nearest else {})
            left_s -= sum(taken.values())
            yield from taken

    def _part(
        self,
        file: str,
        reaching: Sequence[str],
        changed: Mapping[str, FileChange],
        durations: Durations,
        limit_s: float,
    ) -> dict[str, float]:
        """Return the functions of a test file that fit into `limit_s` seconds, those about the change first, with their
        seconds. If the tests that reach the change are known (`reaching`), only functions with such tests are taken."""
        with self._provider.at(self._base) as box:
            source = dict(_texts(box, [file])).get(file, "")
        functions = [f"{file}::{name}" for name in most_relevant_first(source, changed)]
        part: dict[str, float] = {}
        for function, function_s in durations.of_functions(file, functions).items():
            if function_s <= limit_s and (not reaching or any(holds(function, test) for test in reaching)):
                part[function], limit_s = function_s, limit_s - function_s
        return part


def _by_file(tests: Iterable[str]) -> Counter[str]:
    return Counter(map(file_of, tests))


def _texts(box: Sandbox, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            yield path, box.read(path, max_bytes=SOURCE_BYTES).decode(errors="replace")
        except OSError:
            continue


def _is_page(path: str) -> bool:
    """Whether a file is documentation by its name: text in a folder of documentation, or a change log."""
    *folders, name = path.lower().split("/")
    stem, _, suffix = name.rpartition(".")
    return suffix in TEXT and (not DOCUMENTATION.isdisjoint(folders) or stem in CHANGE_LOGS)
