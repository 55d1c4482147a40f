"""The guest's side of the channel: reads requests from stdin, and writes replies and errors as frames to stdout."""

from __future__ import annotations

import errno
import json
import os
import select
import struct
from typing import Any, Dict, Iterable, Tuple

Json = Dict[str, Any]
OVER, FREEZE = 0, 11
"""Exit codes of a lease's process: it has already replied, or the server must freeze the fork and reply."""


IDLE_S = [6 * 3600.0]
"""A guest ends after this many seconds without a request. When the host's process ends, its pipes are closed at once;
this limit is for a connection to another machine that was lost without being closed."""


class Refused(Exception):
    """A request that fails; becomes an error frame."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def read_exactly(size: int) -> bytes:
    """Read from stdin. Ends the process if the host is gone."""
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            os._exit(OVER)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive() -> Tuple[Json, bytes]:
    """Read the next request. A host that is silent for too long counts as gone."""
    if not select.select([0], [], [], IDLE_S[0])[0]:
        os._exit(OVER)
    head, body = struct.unpack("!II", read_exactly(8))
    header: Json = json.loads(read_exactly(head))
    return header, read_exactly(body)


def reply(header: Json, payload: bytes = b"") -> None:
    """Send a frame. Ends the process if the host is gone."""
    reply_in_parts(header, len(payload), [payload])


def reply_in_parts(header: Json, size: int, parts: Iterable[bytes]) -> None:
    """Send a frame whose payload, of `size` bytes, is made piece by piece. Any failure on the way ends the process,
    because a frame cannot be taken back once it was started."""
    head = json.dumps(header).encode()
    data = struct.pack("!II", len(head), size) + head
    try:
        for part in parts:
            write_all(1, data + part)
            data = b""
        write_all(1, data)
    except OSError:
        os._exit(OVER)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data, with as many writes as it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def failure(error: Exception) -> Json:
    """Return the error frame that reports an exception."""
    if isinstance(error, Refused):
        return {"error": error.kind, "message": str(error)}
    if isinstance(error, OSError):
        kind = "full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "os"
        path = error.filename if isinstance(error.filename, str) else ""
        return {"error": kind, "errno": error.errno or 0, "message": error.strerror or str(error), "path": path}
    if isinstance(error, RecursionError):
        return {"error": "sandbox", "message": "directories are nested too deep for a state"}
    return {"error": "sandbox", "message": "%s: %s" % (type(error).__name__, error)}
