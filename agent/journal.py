"""The Event union and the append-only log that a run consists of.

Law: the run is its journal. An event is on disk before anybody acts on it; kill -9 at any byte loses at most what was
in flight, and a torn last line is cut off on opening.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated, Any, Literal, Self

from agent.budget import Usage
from agent.conversations import Passage
from agent.errors import JournalError, RunInUse
from agent.lines import append, cut_torn_line, whole_lines
from agent.measure import SuiteReport
from agent.models import Completion
from agent.search import Choice
from agent.steering import Order
from agent.tree import Node, NodeId
from agent.value import Evaluation
from sandboxes import Snapshot

__all__ = [
    "Added",
    "Asked",
    "Ended",
    "Event",
    "Exhausted",
    "Failed",
    "Journal",
    "Merged",
    "Noted",
    "Refusal",
    "Refused",
    "Remeasured",
    "Spent",
    "Started",
    "Steered",
    "read_events",
    "to_json",
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class Started:
    """A run began: everything needed to resume it the same way."""

    task: dict[str, Any]
    settings: dict[str, Any]
    base: Snapshot
    version: int = VERSION
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Spent:
    """Measurements were used. Journals of earlier versions hold model calls in this form too."""

    usage: Usage
    what: str = ""
    node: NodeId | None = None
    kind: Literal["spent"] = "spent"


@dataclass(frozen=True, slots=True)
class Asked:
    """A model was asked and has answered. `answer.usage` is what that cost."""

    model: str
    request: str
    """The digest of all that the answer depends on (`agent.asking.Request`)."""
    conversation: Passage
    """The tools and the messages; `agent.run.Run.conversations` has them whole."""
    sampling: dict[str, Any]
    answer: Completion
    node: NodeId | None = None
    """On whose behalf; of a state that is no node yet, the parent."""
    purpose: str = ""
    """`policy`, `value`, or what else the answer was for."""
    kind: Literal["asked"] = "asked"


Refusal = Literal["TooLong", "ToolsRefused"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A model's server did not take a request, for what it is; that cost nothing. Fields as in `Asked`."""

    model: str
    request: str
    conversation: Passage
    sampling: dict[str, Any]
    error: Refusal
    """The class in `agent.errors`."""
    reason: str
    node: NodeId | None = None
    purpose: str = ""
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Added:
    """A state was measured."""

    node: Node
    elapsed_s: float = 0.0
    """Seconds of all sittings so far; the same field on every event that ends an expansion."""
    choice: Choice | None = None
    """The selection that led here; the same field on every event that ends an expansion."""
    kind: Literal["added"] = "added"


@dataclass(frozen=True, slots=True)
class Merged:
    """An expansion of `parent` led to a state that the tree had already."""

    parent: NodeId
    node: NodeId
    label: str = ""
    policy_id: str = ""
    elapsed_s: float = 0.0
    choice: Choice | None = None
    proposal: str = ""
    """What was proposed, in canonical form (`agent.proposals`)."""
    kind: Literal["merged"] = "merged"


@dataclass(frozen=True, slots=True)
class Remeasured:
    """The state of a node was measured once more. The node stays what it is."""

    node: NodeId
    evaluation: Evaluation
    report: SuiteReport
    elapsed_s: float = 0.0
    choice: Choice | None = None
    kind: Literal["remeasured"] = "remeasured"


@dataclass(frozen=True, slots=True)
class Failed:
    """What was begun at `node` ended without a state, or without a measurement."""

    node: NodeId
    reason: str
    label: str = ""
    policy_id: str = ""
    elapsed_s: float = 0.0
    choice: Choice | None = None
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing is left to propose at `node`."""

    node: NodeId
    policy_id: str = ""
    """The one policy of several that has nothing left there; empty: none has."""
    kind: Literal["exhausted"] = "exhausted"


@dataclass(frozen=True, slots=True)
class Noted:
    """A fact about a state that cost something to find (a coverage spectrum, a judge's opinion)."""

    node: NodeId
    key: str
    data: Any
    kind: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True)
class Steered:
    """A person gave an order."""

    order: Order
    inbox_bytes: int = 0
    """How much of the inbox (`agent.inbox`) had been taken over then, this order included."""
    kind: Literal["steered"] = "steered"


@dataclass(frozen=True, slots=True)
class Ended:
    """A sitting ended. A later one may follow."""

    status: str
    stop: str
    best: NodeId | None = None
    verified: bool = False
    patch_blob: str | None = None
    elapsed_s: float = 0.0
    final: dict[str, int] = field(default_factory=dict)
    kind: Literal["ended"] = "ended"


Event = Started | Spent | Asked | Refused | Added | Merged | Remeasured | Failed | Exhausted | Noted | Steered | Ended


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
        JournalError: a line before the last cannot be read.
    """
    for number, (line, _) in enumerate(whole_lines(path), 1):
        try:
            yield decode(line)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise JournalError(f"{path}:{number} is not an event of this version of ramify: {reason}") from error


class Journal:
    """A run directory: `journal.jsonl`, appended and synced, and `blobs/` named by their SHA-256. Thread-safe.

    One process at a time may hold it open (an advisory lock, gone with the process); others may read it meanwhile.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        self.directory = directory
        self.path = directory / "journal.jsonl"
        self._lock = threading.Lock()
        if read_only:
            self._file: IO[bytes] = self.path.open("rb")
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
        """Write one event and wait until it is on disk."""
        line = encode(event)
        with self._lock:
            append(self._file, line)

    def put_blob(self, data: bytes) -> str:
        """Store bytes by content; returns their SHA-256 in hex."""
        from hashlib import sha256

        name = sha256(data).hexdigest()
        path = self.directory / "blobs" / name
        if not path.exists():
            write_atomically(path, data)
        return name

    def get_blob(self, name: str) -> bytes:
        """What `put_blob` stored. Raises FileNotFoundError."""
        return (self.directory / "blobs" / name).read_bytes()

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
