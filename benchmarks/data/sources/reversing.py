"""Inverts a git patch, from its text alone."""

from __future__ import annotations

import re

_OPPOSITES = (
    (b"--- ", b"+++ "),
    (b"old mode ", b"new mode "),
    (b"rename from ", b"rename to "),
    (b"new file mode ", b"deleted file mode "),
)
_SECOND = (b"+++ ", b"new mode ", b"rename to ")
"""Header lines that follow directly after their opposite."""
_FILES = (b"--- ", b"+++ ")
_SIDES = {b"a/": b"b/", b"b/": b"a/"}
_REVERSED = {b"+": b"-", b"-": b"+"}
_HUNK = re.compile(rb"@@ -(\d+(?:,\d+)?) \+(\d+(?:,\d+)?) @@(.*)", re.DOTALL)
_INDEX = re.compile(rb"index ([0-9a-f]+)\.\.([0-9a-f]+)(.*)", re.DOTALL)


def reversed_patch(patch: bytes) -> bytes:
    """The patch that undoes a git patch, for `git apply`.

    Raises:
        ValueError: the patch changes a binary file or copies a file, which its text alone does not tell how to undo.
    """
    turned: list[bytes] = []
    old = new = 0  # lines of each side that the hunk still has
    for line in patch.splitlines(keepends=True):
        if old or new:
            mark = line[:1]
            old, new = old - (mark in b" -\n"), new - (mark in b" +\n")
            turned.append(_REVERSED.get(mark, mark) + line[1:])
        elif hunk := _HUNK.fullmatch(line):
            old, new = _length(hunk[1]), _length(hunk[2])
            turned.append(b"@@ -%s +%s @@%s" % (hunk[2], hunk[1], hunk[3]))
        else:
            turned.insert(len(turned) - line.startswith(_SECOND), _header(line))
    return b"".join(turned)


def _length(span: bytes) -> int:
    return int(span.partition(b",")[2] or 1)


def _header(line: bytes) -> bytes:
    if line.startswith((b"GIT binary patch", b"Binary files ", b"copy from ")):
        raise ValueError(f"a patch with {line.strip().decode(errors='replace')!r} cannot be reversed by its text")
    if index := _INDEX.fullmatch(line):
        return b"index %s..%s%s" % (index[2], index[1], index[3])
    for one, other in (*_OPPOSITES, *(pair[::-1] for pair in _OPPOSITES)):
        if line.startswith(one):
            rest = line[len(one) :]
            return other + (_SIDES.get(rest[:2], rest[:2]) + rest[2:] if one in _FILES else rest)
    return line
