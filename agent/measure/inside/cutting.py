"""Cut long texts at lines, or else at words, with a note of how much is left out. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

GAP = "[... %d bytes left out here%s ...]"


def cut(text: str, limit: int, hint: str = "") -> tuple[str, int]:
    """Return the head and tail of a text, about `limit` bytes, and the number of bytes left out between them. `hint` is
    added to the note there."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text, 0
    head, tail = _head(data[: limit // 2]), _tail(data[-(limit // 2) :])
    elided = len(data) - len(head) - len(tail)
    before = head.decode(errors="ignore")
    before = before[:-1] if before.endswith("\n") else before
    return before + "\n" + GAP % (elided, hint) + "\n" + tail.decode(errors="ignore"), elided


def ending(text: str, limit: int) -> str:
    """Return the tail of a text, about `limit` bytes."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    tail = _tail(data[-limit:])
    return GAP % (len(data) - len(tail), "") + "\n" + tail.decode(errors="ignore")


def _head(data: bytes) -> bytes:
    ends = (data.rfind(mark) + 1 for mark in (b"\n", b" "))
    return data[: next((end for end in ends if end > len(data) // 2), len(data))]


def _tail(data: bytes) -> bytes:
    starts = (data.find(mark) + 1 for mark in (b"\n", b" "))
    return data[next((start for start in starts if 0 < start < len(data) // 2), 0) :]
