"""The append-only log of events that a run consists of.

Law: the run is its journal. An event is on disk before anybody acts on it; kill -9 at any byte loses nothing but what
was in flight, which is known and begun again; a torn last line is cut off on opening.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, Self

from agent.errors import JournalError, RunInUse
from agent.events import Begun, Event
from agent.lines import append, cut_torn_line, whole_lines

__all__ = ["Journal", "read_events", "to_json"]

log = logging.getLogger(__name__)

_BLOB = re.compile("[0-9a-f]{64}")
"""A name leads to no other folder, whoever wrote the journal."""
_SHOWN = 64
"""Characters of a name that is none."""


@cache
def _adapter() -> Any:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def to_json(record: Any) -> bytes:
    """A dataclass as ASCII on one line; enumerations by value, lone surrogates escaped.

    Not by pydantic, which replaces the lone surrogates of a key: a test's id may hold them (pydantic 2.14).
    """
    return json.dumps(record, default=_plain, ensure_ascii=True, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else {each.name: getattr(value, each.name) for each in fields(value)}


def encode(event: Event) -> bytes:
    """One line of the journal, newline included."""
    return to_json(event) + b"\n"


def decode(line: bytes) -> Event:
    """Raises ValueError when the line is not an event."""
    event: Event = _adapter().validate_python(json.loads(line), strict=False)
    return event


def read_events(path: Path) -> Iterator[Event]:
    """The events of a journal file; a torn last line is passed over.

    Raises:
        JournalError: the file or a line before the last cannot be read.
    """
    _opened(path).close()
    for number, (line, _) in enumerate(whole_lines(path), 1):
        try:
            yield decode(line)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise JournalError(f"{path}:{number} is not an event of this version of ramify: {reason}") from error


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error


class Journal:
    """A run directory: `journal.jsonl`, appended and synced, and `blobs/` named by their SHA-256. Thread-safe.

    One process at a time may hold it open (an advisory lock, gone with the process); others may read it meanwhile.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.directory = directory
        self.path = directory / "journal.jsonl"
        self._lock = threading.Lock()
        if read_only:
            self._file: IO[bytes] = _opened(self.path)
            return
        (directory / "blobs").mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b", buffering=0)
        self._hold()
        cut_torn_line(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process open the run."""
        self._file.close()

    def events(self) -> list[Event]:
        """All that was recorded so far."""
        return list(read_events(self.path))

    def append(self, event: Event) -> None:
        """Write one event and wait until it is on disk; not for the beginning of a choice, which is chosen anew where
        the whole machine fails."""
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
        """What `put_blob` stored.

        Raises:
            JournalError: the run is damaged: there is no such blob, or that is no name of one.
        """
        try:
            if _BLOB.fullmatch(name):
                return (self.directory / "blobs" / name).read_bytes()
        except OSError as error:
            log.debug("a blob cannot be read: %s", error)
        raise JournalError(
            f"the run is damaged: {self.directory}/blobs has no {name[:_SHOWN]!r}, which the journal names; "
            "put it back, or leave the run out"
        )

    def _hold(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise RunInUse(f"{self.directory} is in use by another ramify process; wait for it or stop it") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole: a crash leaves the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
