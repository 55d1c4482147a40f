"""Exact replacement of one occurrence in a text, and what to say when there is no such place."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterator

__all__ = ["NoSuchPlace", "numbered", "replace_once"]

COMPARED_LINES = 5_000
"""In longer files only so many lines are compared with a text that was not found."""


class NoSuchPlace(Exception):
    """The text does not occur, or not at one place only. The message is for the model."""


def replace_once(text: str, old: str, new: str, line: int | None = None) -> tuple[str, int]:
    """The text with one occurrence of `old` replaced, and the 1-based line at which it began.

    Raises:
        NoSuchPlace: `old` is empty, equals `new`, does not occur, or occurs more than once (at `line`, if given).
    """
    if not old:
        raise NoSuchPlace("`old` is empty: give the text to be replaced, or use write to create a file")
    if old == new:
        raise NoSuchPlace("`old` and `new` are the same: nothing would change")
    places = [(at, text.count("\n", 0, at) + 1) for at in _occurrences(text, old)]
    if not places:
        raise NoSuchPlace(_why_missing(text, old))
    chosen = places if line is None else [place for place in places if place[1] == line]
    if len(chosen) != 1:
        raise NoSuchPlace(_why_not_one([begins for _, begins in places], line))
    at, begins = chosen[0]
    return text[:at] + new + text[at + len(old) :], begins


def numbered(lines: list[str], first: int) -> str:
    """Lines with their numbers, the first being number `first`."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _occurrences(text: str, old: str) -> Iterator[int]:
    """Where `old` begins, overlapping occurrences included."""
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + 1)


def _why_not_one(begins: list[int], line: int | None) -> str:
    where = ", ".join(map(str, begins[:10])) + (", ..." if len(begins) > 10 else "")
    if line is None:
        return f"`old` occurs {len(begins)} times, at lines {where}: give more of its surroundings, or `line`"
    if line in begins:
        return f"`old` occurs more than once at line {line}: give more of its surroundings"
    return f"`old` does not begin at line {line}, but at {where}"


def _why_missing(text: str, old: str) -> str:
    if "\r\n" in text and old.replace("\r\n", "\n") in text.replace("\r\n", "\n"):
        return "`old` does not occur: the lines of this file end in \\r\\n, write them so in `old` and `new`"
    lines = [line.rstrip("\r") for line in text.split("\n")]
    wanted = [line.rstrip("\r") for line in old.split("\n")]
    found = _nearest(lines[:COMPARED_LINES], wanted)
    if found is None:
        return "`old` does not occur in the file, and nothing like it: view the file first"
    start, same_words = found
    hint = "only the white space differs" if same_words else "the nearest lines are"
    shown = numbered(lines[max(0, start - 1) : start + len(wanted) + 1][:40], max(1, start))
    return f"`old` does not occur in the file; {hint}:\n{shown}"


def _nearest(lines: list[str], wanted: list[str]) -> tuple[int, bool] | None:
    """The 0-based line from which most of `wanted` agrees but for white space, and whether all of it does."""
    places = defaultdict(list)
    for offset, line in enumerate(wanted):
        if line.strip():
            places[line.strip()].append(offset)
    votes = Counter(n - o for n, line in enumerate(lines) for o in places.get(line.strip(), ()) if n >= o)
    if votes:
        start = max(votes, key=lambda n: (votes[n], -n))
        return start, votes[start] == sum(map(len, places.values()))
    longest = max((line.strip() for line in wanted), key=len)
    stripped = [line.strip() for line in lines]
    close = difflib.get_close_matches(longest, stripped, n=1, cutoff=0.5)
    if not close:
        return None
    offset = next(o for o, line in enumerate(wanted) if line.strip() == longest)
    return max(0, stripped.index(close[0]) - offset), False
