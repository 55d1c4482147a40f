"""Scopes: which tests measure a state where all tests would take too long.

A scope is chosen without running anything: by what each test executed in the base state where that is known, else by
imports and names (`agent.measure.scopes.related`). It consists of whole test files, nearest first, up to an estimated
time.

Law: within one process a state keeps its scope.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.counting import counted
from agent.measure import SuiteReport
from agent.measure.adapters.registry import OF_PYTHON
from agent.measure.baseline import Baseline
from agent.measure.diffs import parse
from agent.measure.ids import file_of
from agent.measure.probing.spectrum import Spectrum, affected
from agent.measure.protection import Protection
from agent.measure.scopes.changed import Changed, changed_of
from agent.measure.scopes.index import Index, read_index
from agent.measure.scopes.related import Near, related
from agent.measure.timing import Timing
from sandboxes import Change, Provider, Sandbox, SandboxError, Snapshot

log = logging.getLogger(__name__)

ESTIMATED = 0.2
"""Share of a scope's time that its tests may take by estimate: estimates err, and a run needs time to start."""
TEST_S = 0.1
"""Estimate for an unknown test."""
FILE_S = 1.0
"""Estimate for an unknown test file."""
SOURCE_BYTES = 2_000_000
"""Larger sources are compared by name alone."""
NAMED = 3


def selects(adapter: str) -> bool:
    """Whether the adapter can run single files of Python tests."""
    return adapter in OF_PYTHON


def by_scopes(baseline: SuiteReport, timing: Timing) -> bool:
    """Whether states are measured by scopes: all tests take too long to run in every state, and the runner can
    select."""
    return selects(baseline.adapter) and (bool(baseline.late) or baseline.duration_s > timing.every_s)


def state_s(baseline: SuiteReport, timing: Timing) -> float:
    """The most seconds that measuring a state should take; a scope may have to run in the base state too."""
    return min(baseline.duration_s, 2 * timing.scope_s) if by_scopes(baseline, timing) else baseline.duration_s


@dataclass(frozen=True, slots=True)
class Scope:
    """The tests that measure a state."""

    files: tuple[str, ...]
    """Test files, nearest first; empty when the change reaches none."""
    why: str
    """Which tests these are, for people."""

    def describe(self, report: SuiteReport, baseline: SuiteReport) -> str:
        """What a report of this scope rests on, for people."""
        whole = len(baseline.outcomes) + sum(baseline.late.values())
        total = f"{'about ' if baseline.late else ''}{max(whole, len(report.outcomes)):,}"
        return f"{len(report.outcomes):,} of {total} tests: {self.why}"


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
        self._reading = threading.Lock()
        self._index: Index | None = None

    def of(self, snapshot: Snapshot) -> Scope:
        """The scope of a state."""
        with self._lock:
            if snapshot.digest not in self._known:
                self._known[snapshot.digest] = self._chosen(snapshot)
            return self._known[snapshot.digest]

    def prepare(self) -> None:
        """Read the sources of the base state in a thread of its own: that takes seconds, and nobody waits yet."""
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
            return self._index

    def test_files(self) -> tuple[str, ...]:
        """All known test files; before any run reported one, the files named like tests."""
        report = self._baseline.report
        reported = dict.fromkeys([*map(file_of, report.outcomes), *report.late])
        return tuple(reported) or tuple(path for path in self.index.files if self._protection.is_test(path))

    def _chosen(self, snapshot: Snapshot) -> Scope:
        changes = tuple(each for each in self._provider.changes(self._base, snapshot) if self._counts(each))
        if not changes:
            return Scope((), "the change reaches none of them")
        paths = [each.path for each in changes]
        near = self._by_coverage(snapshot, paths) or self._by_imports(snapshot, changes)
        files = tuple(self._filled(near))
        cut = "" if len(files) == len(near) else " best"
        return Scope(files, f"those that{cut} reach {_listed(paths)}" if files else f"none reaches {_listed(paths)}")

    def _counts(self, change: Change) -> bool:
        """Whether tests can see the change: protected files are restored, and git's own are not part of a patch."""
        return not self._protection.covers(change) and ".git" not in change.path.split("/")

    def _by_coverage(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Test files that executed what was changed; none when the change is in a file that no test executed."""
        spectrum = self._spectrum()
        executed = {path for lines in spectrum.executed.values() for path in lines} | set(spectrum.imported)
        if not all(path in executed for path in paths):
            return []
        hit = affected(spectrum, parse(self._provider.diff(self._base, snapshot)))
        return list(dict.fromkeys(file_of(test) for test in spectrum.outcomes if test in hit))

    def _by_imports(self, snapshot: Snapshot, changes: Sequence[Change]) -> list[str]:
        with self._provider.at(self._base) as box:
            before = dict(_texts(box, (each.path for each in changes if each.kind != "added")))
        with self._provider.at(snapshot) as box:
            after = dict(_texts(box, (each.path for each in changes if each.kind != "removed")))
        changed: Mapping[str, Changed] = {
            each.path: changed_of(each.path, before.get(each.path), after.get(each.path)) for each in changes
        }
        found: list[Near] = related(self.index, changed, self.test_files())
        return [each.file for each in found]

    def _filled(self, near: Sequence[str]) -> Iterator[str]:
        """The nearest file, and further ones in order as long as they fit the estimated time."""
        left_s = ESTIMATED * self._timing.scope_s * self._timing.jobs
        seconds = _seconds(self._baseline.report)
        for place, file in enumerate(near):
            if place == 0 or seconds(file) <= left_s:
                left_s -= seconds(file)
                yield file


def _seconds(report: SuiteReport) -> Callable[[str], float]:
    """Estimates the seconds of a test file, from its own durations or those of others."""
    known: dict[str, float] = {}
    for test, duration_s in report.durations.items():
        known[file_of(test)] = known.get(file_of(test), 0.0) + duration_s
    mean_s = sum(known.values()) / len(report.durations) if report.durations else TEST_S

    def estimated(file: str) -> float:
        if file in report.late:
            return known.get(file, 0.0) + mean_s * report.late[file]
        return known.get(file, FILE_S)

    return estimated


def _texts(box: Sandbox, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        try:
            yield path, box.read(path, max_bytes=SOURCE_BYTES).decode(errors="replace")
        except OSError:
            continue


def _listed(paths: Sequence[str]) -> str:
    more = f" and {counted(len(paths) - NAMED, 'more file')}" if len(paths) > NAMED else ""
    return ", ".join(f"`{path}`" for path in paths[:NAMED]) + more
