"""Files of lines that are only appended to. A line counts once its newline is there: one that a crash tore does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["append", "cut_torn_line", "whole_lines"]

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
