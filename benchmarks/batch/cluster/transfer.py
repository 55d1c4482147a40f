"""Sends a run's folder as a stream of small pieces of a compressed archive. States are not sent."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from agent.run.paths import STORE

PIECE = 64 * 1024
"""The largest piece, in bytes: Ray passes arguments of up to 100 KiB with the call and keeps larger ones in its object
store."""


def send(folder: Path, deliver: Callable[[bytes], None]) -> None:
    """Deliver a run's folder without its states, piece by piece, with only one piece in memory at a time."""
    with tarfile.open(fileobj=cast("IO[bytes]", _Pieces(deliver)), mode="w|gz", bufsize=PIECE) as archive:
        for path in sorted(folder.iterdir()):
            if path.name != STORE:
                archive.add(path, path.name)


class _Pieces:
    """The file that the archive is written to."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver

    def write(self, data: bytes) -> int:
        self._deliver(bytes(data))
        return len(data)
