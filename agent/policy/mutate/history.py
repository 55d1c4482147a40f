"""History: where the base state's lines are after the edits on a path, and which bytes those edits wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.actions import Edit
from agent.measure.diffs import common_ends


@dataclass(frozen=True, slots=True)
class History:
    """The effect of a series of edits on one file."""

    line_of: dict[int, int]
    """The present line of each line of the base state; only those that moved or were edited."""
    written: tuple[tuple[int, int], ...]
    """The spans of the present bytes that an edit wrote."""


def retrace(data: bytes, edits: Sequence[Edit]) -> History:
    """The history of a file, from its present content and the edits made to it, oldest first.

    Edits without a line, or whose text is not there any more, are ignored.
    """
    states = _states(data, edits)
    count = states[0][0].count(b"\n") + 1
    lines = {n: n for n in range(1, count + 1)}
    written: list[tuple[int, int]] = []
    for before, edit in states[:-1]:
        assert edit is not None
        assert edit.line is not None
        start = _offset(before, edit.line)
        old, new = edit.old.encode(), edit.new.encode()
        head, tail = common_ends(old, new)
        shift = len(new) - len(old)
        written = [(a + shift, b + shift) if a >= start + len(old) else (a, b) for a, b in written]
        written.append((start + head, start + len(new) - tail))
        lines = {base: _moved(now, edit.line, old.count(b"\n"), new.count(b"\n")) for base, now in lines.items()}
    return History({base: now for base, now in lines.items() if base != now}, tuple(written))


def _states(data: bytes, edits: Sequence[Edit]) -> list[tuple[bytes, Edit | None]]:
    """The file before each edit, with that edit, and the present file last; computed by undoing the edits."""
    states: list[tuple[bytes, Edit | None]] = [(data, None)]
    for edit in reversed(edits):
        if edit.line is None:
            continue
        start, new = _offset(data, edit.line), edit.new.encode()
        if start < 0 or data[start : start + len(new)] != new:
            continue
        data = data[:start] + edit.old.encode() + data[start + len(new) :]
        states.append((data, edit))
    return states[::-1]


def _offset(data: bytes, line: int) -> int:
    """The offset at which a line begins; -1 if there are fewer lines."""
    start = 0
    for _ in range(line - 1):
        start = data.find(b"\n", start) + 1
        if start == 0:
            return -1
    return start


def _moved(line: int, first: int, old_lines: int, new_lines: int) -> int:
    if line < first:
        return line
    if line >= first + max(old_lines, 1):
        return line + new_lines - old_lines
    return first + min(line - first, max(new_lines, 1) - 1)
