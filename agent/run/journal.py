"""The append-only log of events that a run consists of.

Invariant: the run is its journal. An event other than `Begun` is on disk before anything acts on it; kill -9 at any
byte loses nothing but what was in flight, which is known and restarted; a torn last line is cut off on opening.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from math import isfinite
from pathlib import Path
from typing import IO, Any, Self

from agent.errors import BlobLost, JournalError, RunInUse
from agent.files import append, hold, to_json, whole_lines, write_atomically
from agent.parsing import adapter, loads, reason
from agent.run.events import Begun, Event

_BLOB = re.compile("[0-9a-f]{64}")
"""Valid names of blobs; they cannot lead out of the folder."""
_LONG = re.compile(rb"[0-9]{19}")
"""A run of digits so long that it may be a number no event has. Only lines with one are checked for that."""


def encode(event: Event) -> bytes:
    """One line of the journal, newline included."""
    return to_json(event) + b"\n"


def decode(line: bytes) -> Event:
    """Return the event of a line. Raises ValueError if the line is not an event."""
    numbers: dict[str, Callable[[str], Any]] = {"parse_float": _finite, "parse_constant": _finite}
    if _LONG.search(line):
        numbers["parse_int"] = _small
    event: Event = adapter(Event, "kind").validate_python(loads(line, **numbers), strict=False)
    return event


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is not a number of an event")
    return number


def _small(text: str) -> int:
    if len(text) > 19:
        raise ValueError(f"{text[:40]}... is not a number of an event")
    return int(text)


def read_events(path: Path) -> Iterator[Event]:
    """The events of a journal file; a torn last line is ignored.

    Raises:
        JournalError: the file or a line before the last cannot be read.
    """
    _open_for_reading(path).close()
    for number, (line, _) in enumerate(whole_lines(path), 1):
        try:
            yield decode(line)
        except ValueError as error:
            raise JournalError(
                f"{path}:{number} cannot be read, since the journal is damaged or was written by another version of "
                f"ramify: {reason(error)}"
            ) from error


def _create_for_appending(directory: Path) -> IO[bytes]:
    """Open the journal of a run directory for appending; create it if it does not exist."""
    try:
        (directory / "blobs").mkdir(parents=True, exist_ok=True)
        return (directory / "journal.jsonl").open("a+b", buffering=0)
    except (FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise JournalError(
            f"{directory} cannot hold a run: {error.filename}: {error.strerror}; name another"
        ) from error


def _open_for_reading(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error


class Journal:
    """A run directory: `journal.jsonl`, appended and synced, and `blobs/` named by their SHA-256. Thread-safe.

    One process at a time may hold it open, by an advisory lock that ends with the process; others may read it.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.directory = directory
        self.path = directory / "journal.jsonl"
        self._lock = threading.Lock()
        if read_only:
            self._file: IO[bytes] = _open_for_reading(self.path)
            return
        self._file = _create_for_appending(directory)
        hold(self._file, directory, RunInUse)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process open the run."""
        self._file.close()

    def events(self) -> list[Event]:
        """All events recorded so far."""
        return list(read_events(self.path))

    def append(self, event: Event) -> None:
        """Write one event and wait until it is on disk, except for a `Begun` event: if the machine fails, that choice
        is made again."""
        line = encode(event)
        with self._lock:
            append(self._file, line, sync=not isinstance(event, Begun))

    def put_blob(self, data: bytes) -> str:
        """Store bytes by content; returns their SHA-256 in hex."""
        from hashlib import sha256

        name = sha256(data).hexdigest()
        path = self.directory / "blobs" / name
        if not path.exists():
            write_atomically(path, data)
        return name

    def get_blob(self, name: str) -> bytes:
        """Return the bytes that `put_blob` stored.

        Raises:
            BlobLost: it is missing, or its content does not match its name.
        """
        from hashlib import sha256

        path = self.directory / "blobs" / name
        try:
            data = path.read_bytes() if _BLOB.fullmatch(name) and path.is_file() else None
        except OSError:
            data = None
        if data is None or sha256(data).hexdigest() != name:
            kind = "has no" if data is None else "has another"
            raise BlobLost(
                f"the run is damaged: {path.parent} {kind} {name[:64]!r}, which the journal names; put it "
                "back, or leave the run out"
            )
        return data
