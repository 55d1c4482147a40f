"""Files that survive a crash: lines are appended, and whole files are replaced atomically.

An appended line counts only when its newline is written; a line that a crash has torn does not count.
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

CHUNK_BYTES = 65536


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the lines from an offset on, each with the offset at which it ends. A torn last line is left out."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            yield line, start


def append(file: IO[bytes], line: bytes, *, sync: bool = True) -> None:
    """Write a line with its newline, and wait until it is on disk. Without `sync`, a crash of the machine may lose it
    until a later line is synced. The file is unbuffered and opened for appending.

    Raises:
        OSError: the line cannot be written, for instance because the disk is full; the file is unchanged.
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


def hold(file: IO[bytes], name: Path, refusal: type[Exception]) -> None:
    """Lock a file that lines are appended to until it is closed, and cut off a torn last line.

    Raises:
        Exception: `refusal`: another process holds it; the file is closed.
    """
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise refusal(f"{name} is in use by another ramify process; wait for it or stop it") from error
    cut_torn_line(file)


def is_held(path: Path) -> bool:
    """Whether a process holds a file (`hold`); False if the file does not exist."""
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def cut_torn_line(file: IO[bytes]) -> None:
    """Cut off an incomplete last line, which a crash during a write has left."""
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
    """Return a dataclass as JSON: ASCII on one line, enumerations by value, lone surrogates escaped.

    Pydantic is not used: it replaces lone surrogates in keys, and a test's id may hold them (pydantic 2.14).
    """
    return json.dumps(record, default=_plain, ensure_ascii=True, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    return (
        value.value if isinstance(value, Enum) else {field.name: getattr(value, field.name) for field in fields(value)}
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Write a whole file. A crash leaves either the old or the new content, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
