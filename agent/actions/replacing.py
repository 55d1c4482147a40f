"""Applies an edit to a file's text: replaces occurrences, inserts whole lines, or gives a new file its content.

Invariant: an edit is made in full or not at all. In a file whose lines all end in CRLF, the line ends of an edit become
CRLF too: a view of a file does not show its line ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from agent.actions.missing import why_missing
from agent.actions.types import Edit
from agent.measure.diffs import common_ends


class NoSuchPlace(Exception):
    """The edit names no place, or more than one, or changes nothing. The message is for the model."""


class Edited(NamedTuple):
    """A text after an edit, and the range of its new lines (1-based, inclusive)."""

    text: str
    first: int
    last: int


def apply_edit(text: str | None, edit: Edit) -> tuple[str, list[tuple[int, int]]]:
    """A file's text after all replacements of an edit, and the ranges of its new lines (1-based, inclusive).

    Raises:
        NoSuchPlace: one of the replacements cannot be made.
    """
    places: list[tuple[int, int]] = []
    for number, step in enumerate(edit.replacements, 1):
        before = text or ""
        try:
            if step.replace_all and step.old and text is not None:
                text, lines, last = _replaced_everywhere(text, step.old, step.new)
            else:
                text, first, last = edited(text, step.old, step.new, edit.line if number == 1 else None)
                lines = [first]
        except NoSuchPlace as error:
            raise NoSuchPlace(f"of the edits, number {number}: {error}" if edit.more else str(error)) from error
        longer = (text.count("\n") - before.count("\n")) // len(lines)
        places = [(a + longer * bisect_left(lines, a), b + longer * bisect_left(lines, b + 1)) for a, b in places]
        places += [(line + n * longer, line + n * longer + last - lines[0]) for n, line in enumerate(lines)]
    return text or "", sorted(places)


def inverse_edit(path: str, before: str, after: str) -> Edit | None:
    """An edit of whole lines that turns the text `after` back into `before`; None if no such edit exists."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+\Z", text) for text in (after, before))
    first = max(0, min(common_ends(old, new)[0], len(old) - 1))  # at least one line of `after`, to name the place by
    last = common_ends(old[:first:-1], new[first:][::-1])[0]
    undo = Edit(path, "".join(old[first : len(old) - last]), "".join(new[first : len(new) - last]), first + 1)
    return undo if restores(undo, before, after) else None


def restores(undo: Edit, before: str, after: str) -> bool:
    """Whether an edit turns the text `after` back into `before`."""
    try:
        undo.new.encode()  # bytes that are not UTF-8 have no place in a tool call
        return bool(undo.old) and edited(after, undo.old, undo.new, undo.line).text == before
    except (NoSuchPlace, UnicodeEncodeError):
        return False


def edited(text: str | None, old: str, new: str, line: int | None = None) -> Edited:
    """A file's text after an edit; `text` is None if the file does not exist.

    With `old`, its only occurrence (or the one that begins at `line`) is replaced by `new`. Without `old`, `new` is
    inserted as whole lines, the first of which becomes line `line`. Without either, `new` is the content of a new file.

    Raises:
        NoSuchPlace: the place is missing or not unique, or nothing would change.
    """
    if text is None:
        return _created(old, new, line)
    old, new = _with_line_ends_of(text, old, new)
    if old:
        return _replaced(text, old, new, line)
    if line is not None:
        return _inserted(text, new, line)
    if text:
        raise NoSuchPlace(
            f"the file exists and has {_count(text)} lines: give the text to be replaced as `old_str`, or the "
            "`insert_line` after which to insert, or replace all of it with create"
        )
    return _spread("", new, "", 1)


def numbered(lines: list[str], first: int) -> str:
    """The lines with line numbers, counted from `first`."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _created(old: str, new: str, line: int | None) -> Edited:
    if old or line is not None:
        raise NoSuchPlace("there is no such file: make it with create")
    return _spread("", new, "", 1)


def _replaced(text: str, old: str, new: str, line: int | None) -> Edited:
    places = list(_occurrences(text, old))
    if not places:
        raise NoSuchPlace(why_missing(text, old, new))
    chosen = places if line is None else [place for place in places if place[1] == line]
    if len(chosen) != 1:
        raise NoSuchPlace(_why_not_one([begins for _, begins in places], line))
    at, begins = chosen[0]
    return _spread(text[:at], new, text[at + len(old) :], begins)


def _replaced_everywhere(text: str, old: str, new: str) -> tuple[str, list[int], int]:
    """The new text, the lines at which the replaced occurrences began, and the last line of the first new text."""
    old, new = _with_line_ends_of(text, old, new)
    kept = text.split(old)
    if len(kept) == 1:
        raise NoSuchPlace(why_missing(text, old, new))
    lines, height = [1 + kept[0].count("\n")], old.count("\n")
    for part in kept[1:-1]:
        lines.append(lines[-1] + height + part.count("\n"))
    return new.join(kept), lines, lines[0] + new.removesuffix("\n").count("\n")


def _inserted(text: str, new: str, line: int) -> Edited:
    """The text with whole lines inserted before a line, or after the last one."""
    count = _count(text)
    if line > count + 1:
        raise NoSuchPlace(f"`insert_line` is {line - 1}, and the file has {count} lines: give at most {count}")
    end = "\r\n" if _ends_in_crlf(text) else "\n"
    at = sum(len(row) + 1 for row in text.split("\n")[: max(0, line - 1)])
    before, after = text[:at], text[at:]
    if before and not before.endswith("\n"):
        before += end
    return _spread(before, new if new.endswith("\n") else new + end, after, line)


def _spread(before: str, new: str, after: str, first: int) -> Edited:
    return Edited(before + new + after, first, first + new.removesuffix("\n").count("\n"))


def _occurrences(text: str, old: str) -> Iterator[tuple[int, int]]:
    """The offset and 1-based line of each occurrence of `old`, overlapping ones included."""
    at, seen, line = text.find(old), 0, 1
    while at >= 0:
        line, seen = line + text.count("\n", seen, at), at
        yield at, line
        at = text.find(old, at + 1)


def _count(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _ends_in_crlf(text: str) -> bool:
    ends = text.count("\n")
    return ends > 0 and ends == text.count("\r\n")


def _with_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """The two texts of a replacement, with the line ends of the file."""
    if _ends_in_crlf(text):
        old, new = (piece.replace("\r\n", "\n").replace("\n", "\r\n") for piece in (old, new))
    if old == new:
        raise NoSuchPlace("`old_str` and `new_str` are the same: nothing would change")
    return old, new


def _why_not_one(begins: list[int], line: int | None) -> str:
    where = ", ".join(map(str, begins[:10])) + (", ..." if len(begins) > 10 else "")
    if line is None:
        return (
            f"`old_str` occurs {len(begins)} times, at lines {where}: give more of what stands around the one that you "
            "mean, or set `replace_all`"
        )
    if line in begins:
        return f"`old_str` occurs more than once at line {line}: give more of what stands around it"
    return f"`old_str` does not begin at line {line}, but at {where}"
