"""Files that a crash does not damage: lines that are appended, and files that are written whole.

An appended line counts once its newline is there; one that a crash tore does not.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import IO, Any

__all__ = ["append", "cut_torn_line", "to_json", "whole_lines", "write_atomically"]

CHUNK_BYTES = 65536


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """The lines from an offset on, each with the offset at which it ends; a torn last line is passed over."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            yield line, start


def append(file: IO[bytes], line: bytes, *, sync: bool = True) -> None:
    """Write a line, newline included, and wait until it is on disk; without `sync` a crash of the machine may lose it
    until a later one is. The file is unbuffered and opened for appending.

    Raises:
        OSError: it cannot be written (the disk is full); nothing of it is in the file then.
    """
    before = file.seek(0, os.SEEK_END)
    try:
        rest = line
        while rest:
            rest = rest[file.write(rest) :]
        if sync:
            os.fsync(file.fileno())
    except OSError:
        file.truncate(before)
        raise


def cut_torn_line(file: IO[bytes]) -> None:
    """Cut off what a crash in the middle of a write has left behind the last newline."""
    size = file.seek(0, os.SEEK_END)
    keep = size
    while keep > 0:
        start = max(0, keep - CHUNK_BYTES)
        file.seek(start)
        newline = file.read(keep - start).rfind(b"\n")
        if newline >= 0:
            keep = start + newline + 1
            break
        keep = start
    if keep != size:
        file.truncate(keep)
        os.fsync(file.fileno())


def to_json(record: Any) -> bytes:
    """A dataclass as ASCII on one line; enumerations by value, lone surrogates escaped.

    Not by pydantic, which replaces the lone surrogates of a key: a test's id may hold them (pydantic 2.14).
    """
    return json.dumps(record, default=_plain, ensure_ascii=True, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else {each.name: getattr(value, each.name) for each in fields(value)}


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole: a crash leaves the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
