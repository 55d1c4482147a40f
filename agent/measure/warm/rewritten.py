"""What the runs of a base state archived of its test files (`inside.rewritten`), for the runs of other states.

Invariant: only runs of the base state add to it, and only a sandbox unpacks it.
"""

from __future__ import annotations

import threading

from agent.measure.warm.plugins import RunNames
from sandboxes import Sandbox

BYTES = 64 << 20
"""Archives kept of one base state."""


class Rewritten:
    """The archives of one base state. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._archives: tuple[bytes, ...] = ()

    def write(self, box: Sandbox, names: RunNames) -> list[str]:
        """Write the archives; returns their paths."""
        with self._lock:
            archives = self._archives
        paths = [f"{names.folder}/archive{number}" for number in range(len(archives))]
        for path, archive in zip(paths, archives, strict=True):
            box.write(path, archive)
        return paths

    def fetch(self, box: Sandbox, names: RunNames) -> None:
        """Keep what a run of the base state archived, if it did."""
        try:
            archive = box.read(names.archive, max_bytes=BYTES)
        except OSError:
            return
        with self._lock:
            if sum(map(len, self._archives)) + len(archive) <= BYTES:
                self._archives += (archive,)
