"""Negative controls: check that the tests that a state claims to repair could have failed there.

Invariant: a test that cannot fail proves nothing. So an altered copy of it that has to fail (`agent.measure.altering`)
is run by the usual measurer, in a process of its own. If the copy passes in the state and fails in the unpatched base
state, the result is forged. If the copy fails in its last statement, the original result is genuine. Any other result
proves neither and does not count against a patch.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from string import ascii_lowercase

from agent.evaluate.guard import Flag
from agent.measure import Outcome, SuiteReport
from agent.measure.adapters.registry import OF_PYTHON
from agent.measure.altering import DOCUMENTS, END, altered, failing
from agent.measure.baseline import Baseline
from agent.measure.ids import file_of, is_source_doctest
from agent.measure.inside.equality import BUILTIN, EVERYTHING, UNFAILING
from agent.measure.measurer import Measurer
from sandboxes import Provider, Snapshot

log = logging.getLogger(__name__)

FORGED = "the patch forges its result: it passes in a copy in which it has to fail"
REFUSED = {
    EVERYTHING: "the patch makes it compare a value that equals everything",
    UNFAILING: "it passes whatever it expects: the patch disables an assertion, or reads from the test what to return",
    BUILTIN: "the patch replaces a builtin function that it uses",
}
NOT_FAILED = (None, Outcome.PASSED, Outcome.SKIPPED)


class Controls:
    """Runs the negative controls for the states of one task, once each. Thread-safe.

    With `among_all`, the copies run among all tests, as the tests did when they were measured; else by themselves.
    """

    def __init__(
        self, provider: Provider, base: Snapshot, baseline: Baseline, measurer: Measurer, *, among_all: bool = False
    ) -> None:
        self._provider, self._base, self._baseline, self._measurer = provider, base, baseline, measurer
        self._among_all = among_all
        self._lock = threading.Lock()
        self._cache: dict[tuple[str, ...], tuple[Flag, ...]] = {}

    def look(self, snapshot: Snapshot, report: SuiteReport) -> tuple[tuple[Flag, ...], int]:
        """Flags for the tests that failed in the base state and pass in this one according to its report, and the
        number of test runs made to find them."""
        claimed = self._claimed(report)
        key = (snapshot.digest, *claimed)
        with self._lock:
            cached = self._cache.get(key)
        flags, runs = self._look(snapshot, claimed) if cached is None else (cached, 0)
        with self._lock:
            return self._cache.setdefault(key, flags), runs

    def _claimed(self, report: SuiteReport) -> tuple[str, ...]:
        """The repaired tests that can be copied: those in Python test files, and examples in documents."""
        if report.adapter not in OF_PYTHON:
            return ()
        repaired = (test for test in report.passes if self._baseline.report.outcome(test) not in NOT_FAILED)
        tests = (t for t in repaired if file_of(t).endswith((".py", *DOCUMENTS)) and not is_source_doctest(t))
        return tuple(test for test in tests if test not in self._baseline.report.flaky)

    def _look(self, snapshot: Snapshot, claimed: Sequence[str]) -> tuple[tuple[Flag, ...], int]:
        texts = self._texts(claimed)
        marker = f"{_word()} "
        changed = [change.path for change in self._provider.changes(self._base, snapshot)]

        beside = "".join(text for path, text in texts.items() if PurePosixPath(path).name == "conftest.py")

        def copied(path: str, tests: Collection[str]) -> str | None:
            return altered(path, texts[path], tests, marker, beside, changed)

        files, tests = _copies(claimed, texts, copied)
        if not tests:
            return (), 0
        report = self._measurer.measure_copies(snapshot, () if self._among_all else tests, files)
        reasons = {test: _why(report, test, marker) for test in tests}
        passing = [test for test in tests if report.passed(test)]
        reasons |= dict.fromkeys(self._able_to_fail(passing, texts), FORGED)
        proven = sum(f"{marker}{END}" in report.messages.get(test, "") for test in tests)
        log.info("%d of %d tests that the patch repairs are shown to be able to fail", proven, len(claimed))
        flags = (Flag(file_of(test), 0, f"{test}: {why}") for test, why in reasons.items() if why)
        return tuple(flags), 1 + bool(passing)

    def _able_to_fail(self, tests: Sequence[str], texts: Mapping[str, str]) -> list[str]:
        """The tests whose copies, reduced to a failure, do fail in the base state."""
        marker = _word()
        files, tests = _copies(tests, texts, lambda path, names: failing(path, texts[path], names, marker))
        report = self._measurer.measure_copies(self._base, tests, files) if tests else SuiteReport()
        return [test for test in tests if marker in report.messages.get(test, "")]

    def _texts(self, tests: Sequence[str]) -> dict[str, str]:
        """The base state's text of the files of these tests, and of the `conftest.py` files of their folders."""
        files = dict.fromkeys(map(file_of, tests))
        folders = (folder for file in files for folder in PurePosixPath(file).parents)
        paths = dict.fromkeys([*files, *(str(folder / "conftest.py") for folder in folders)])
        texts: dict[str, str] = {}
        with self._provider.at(self._base) as box:
            for path in paths:
                try:
                    texts[path] = box.read(path).decode()
                except (OSError, UnicodeDecodeError):
                    continue
        return texts


def _word() -> str:
    """A word that nobody can guess: a valid Python name without digits."""
    return "".join(secrets.choice(ascii_lowercase) for _ in range(16))


def _copies(
    tests: Sequence[str], texts: Mapping[str, str], copied: Callable[[str, Collection[str]], str | None]
) -> tuple[dict[str, bytes], list[str]]:
    """The copies of the files of these tests, and the tests in them."""
    names: dict[str, set[str]] = {}
    for test in tests:
        names.setdefault(file_of(test), set()).add(test.split("[", 1)[0].rsplit("::", 1)[-1])
    copies = {path: copied(path, functions) for path, functions in names.items() if path in texts}
    files = {path: text.encode() for path, text in copies.items() if text is not None}
    return files, [test for test in tests if file_of(test) in files]


def _why(report: SuiteReport, test: str, marker: str) -> str:
    """The reason not to trust a test, judging by the comparisons in its copy; empty if there is none."""
    message = report.messages.get(test, "")
    return next((why for sign, why in REFUSED.items() if f"{marker}{sign}" in message), "")
