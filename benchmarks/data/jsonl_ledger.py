"""An append-only file of JSON lines, which holds a batch or its verdicts.

Invariant: a line is on disk before anybody acts on it, and is never rewritten. Kill -9 loses at most the line that is
being written.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from agent.errors import UsageError
from agent.files import append, hold

_T = TypeVar("_T")
_REMEDY = "remove the line, or the file"


def read_rows(path: Path, make: Callable[[dict[str, Any]], _T]) -> Iterator[_T]:
    """Convert each object of a file that Ramify wrote, which a kill may have cut, with `make`.

    Raises:
        UsageError: as `read_lines`; or `make` refuses an object.
    """
    for number, row in _numbered(path, torn=True):
        try:
            value = make(row)
        except KeyError as error:
            raise UsageError(f"{path}:{number} has no {error}; {_REMEDY}") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise UsageError(f"{path}:{number} is not as Ramify writes it ({error}); {_REMEDY}") from error
        yield value


def read_lines(path: Path, *, torn: bool = False) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; blank lines are skipped. With `torn`, for our own files that a kill may have
    cut, an unreadable last line is skipped as well, and a missing file has no objects.

    Raises:
        UsageError: a line is not a JSON object, or the file cannot be read.
    """
    return (row for _, row in _numbered(path, torn=torn))


def _numbered(path: Path, *, torn: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects with their line numbers, from 1."""
    if torn and not path.exists():
        return
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            if torn and number == len(lines):
                return
            raise UsageError(f"{path}:{number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}:{number} is not a JSON object")
        yield number, row


class Ledger:
    """One file of JSON lines, held open by one process at a time. Thread-safe.

    Raises:
        UsageError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file = path.open("a+b", buffering=0)
        hold(self._file, path, UsageError)

    def close(self) -> None:
        """Release the file for other processes."""
        self._file.close()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one object and wait until it is on disk."""
        line = json.dumps(row, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        with self._lock:
            append(self._file, line)
