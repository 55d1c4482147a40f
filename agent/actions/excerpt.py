"""Cuts untrusted text to a number of bytes where it enters: the head, the tail, and how much is missing between."""

from __future__ import annotations

import re

from agent.measure.inside.cutting import cut
from agent.untrusted import visible

OBSERVATION_BYTES = 10_000
"""Size of the longest observation: half of it is the head, half the tail."""
_CONTROL = re.compile("[^\n\t -\x7e\xa0-\U0010ffff]")


def excerpt(text: str, limit: int = OBSERVATION_BYTES, hint: str = "") -> tuple[str, int]:
    """The text cut to about `limit` bytes at line ends, or else between words, and the number of bytes left out. The
    mark that replaces them includes the `hint`."""
    return cut(text, limit, hint)


def printable(data: bytes | str) -> str:
    """Bytes as text for display: invalid UTF-8 and control characters become U+FFFD, other invisible ones become
    escapes. A text may hold bytes that are not UTF-8 as surrogates."""
    data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return visible(_CONTROL.sub("\ufffd", text))
