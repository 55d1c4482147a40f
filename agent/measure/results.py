"""A cache of test reports. If several workers request the same report, only one of them produces it.

Invariant: a stored report is returned unchanged. One whose file cannot be read is produced again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from agent.files import to_json, write_atomically
from agent.measure import SuiteReport
from agent.parsing import adapter, loads

Key = tuple[str, ...]
"""The digest of a state, followed by the ids of the requested tests; no ids: all tests."""


class Results:
    """Reports by key. Thread-safe.

    Some are also stored in `folder`, where a later session with the same `rules` reads them.
    """

    def __init__(self, folder: Path | None = None, rules: str = "") -> None:
        self._folder, self._rules = folder, rules
        self._lock = threading.Lock()
        self._reports: dict[Key, SuiteReport] = {}
        self._asking: dict[Key, threading.Lock] = {}

    def get(self, key: Key) -> SuiteReport | None:
        """Return the cached report; None if there is none."""
        with self._lock:
            known = self._reports.get(key)
        return known or self._read(key)

    def put(self, key: Key, report: SuiteReport) -> None:
        """Store a report, replacing any earlier one."""
        with self._lock:
            self._reports[key] = report

    def find(
        self, key: Key, find: Callable[[], SuiteReport], *, whole: bool = True, keep: bool = False
    ) -> tuple[SuiteReport, bool]:
        """Return the report, and whether `find` had to produce it. Meanwhile, other callers with the same key wait.

        `whole`: do not accept a cached report that left tests out. `keep`: store the report for later sessions, unless
        it is invalid, since the fault may be temporary.
        """
        with self._lock:
            asking = self._asking.setdefault(key, threading.Lock())
        with asking:
            known = self.get(key)
            if known is not None and not (whole and known.left_out):
                return known, False
            report = find()
            self.put(key, report)
            if keep and report.valid and self._folder is not None:
                self._folder.mkdir(exist_ok=True)
                write_atomically(self._file(self._folder, key), to_json(report))
        return report, True

    def _read(self, key: Key) -> SuiteReport | None:
        if self._folder is None:
            return None
        try:
            data = loads(self._file(self._folder, key).read_bytes())
            report: SuiteReport = adapter(SuiteReport).validate_python(data)
        except (FileNotFoundError, ValueError):
            return None
        self.put(key, report)
        return report

    def _file(self, folder: Path, key: Key) -> Path:
        return folder / f"{sha256(repr((self._rules, key)).encode()).hexdigest()}.json"
