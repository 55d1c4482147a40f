"""Archives of rewritten test files (`inside.rewritten`): runs of the base state write them, runs of other states use
them.

Invariant: only runs of the base state add archives, and archives are unpacked only in a sandbox.
"""

from __future__ import annotations

import threading

from agent.measure.warm.plugins import RunNames
from sandboxes import Sandbox

BYTES = 64 << 20
"""Maximum total size of the archives of one base state."""


class Rewritten:
    """The archives of one base state. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._archives: tuple[bytes, ...] = ()

    def write(self, box: Sandbox, names: RunNames) -> list[str]:
        """Write the archives into a fork; return their paths."""
        with self._lock:
            archives = self._archives
        paths = [f"{names.folder}/archive{number}" for number in range(len(archives))]
        for path, archive in zip(paths, archives, strict=True):
            box.write(path, archive)
        return paths

    def fetch(self, box: Sandbox, names: RunNames) -> None:
        """Keep the archive that a run of the base state wrote, if there is one and it fits."""
        try:
            archive = box.read(names.archive, max_bytes=BYTES)
        except OSError:
            return
        with self._lock:
            if sum(map(len, self._archives)) + len(archive) <= BYTES:
                self._archives += (archive,)
