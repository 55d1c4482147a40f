"""Explains why a text does not occur in a file, so that a model can correct its edit: the nearest lines, and what
differs.

Nothing here decides about an edit. A text that only nearly matches is never replaced.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

SHOWN_LINES = 40
LIKE_LINES = 200
"""How many of the lines that share most words with a text are compared with it letter by letter."""
OFFSETS = 20
"""If a text repeats a line (`}`), how many of the line's places in the text are considered."""
LIKENESS = 0.5

_NUMBERED = re.compile(r"^ *\d+(?:\t| ?[|:] ?)", re.MULTILINE)
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "),
    }
)
"""Characters that are easily mistaken for plain ones, each with the plain one."""
_CODE = re.compile(r"\\u([0-9a-f]{4})|\\U(000[0-9a-f]{5})")
_UNSEEN = re.compile(r"^[ \t]+|[ \t]+$|[ \t]{2,}|\t")
_VISIBLE = str.maketrans("\t ", "\u2192\u00b7")


class _Nearest(NamedTuple):
    start: int
    """0-based line of the file at which the text would begin."""
    same_words: bool
    """Whether only white space differs."""


def why_missing(text: str, old: str, new: str) -> str:
    """Why the text does not contain `old`, and what to do about it."""
    if "\r\n" in text:
        text, old = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
        if old in text:
            return "`old_str` does not occur in the file: some of its lines end in \\r\\n, write them so in your texts"
    for explain in (_pasted_numbers, _escaped, _look_alikes, _composed):
        if why := explain(text, old):
            return f"`old_str` does not occur in the file: {why}"
    why = f"`old_str` does not occur in the file; {_near(text, old)}"
    return f"{why}\n{question}" if (question := _done_before(text, new)) else why


def _pasted_numbers(text: str, old: str) -> str:
    lines = old.removesuffix("\n").split("\n")
    if not all(_NUMBERED.match(line) for line in lines) or _NUMBERED.sub("", old) not in text:
        return ""
    return "it holds the line numbers that view shows; give it without them"


def _escaped(text: str, old: str) -> str:
    plain = _CODE.sub(lambda match: chr(int(match[1] or match[2], 16)), old)
    for escaped, character in (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"'), ("\\'", "'"), ("\\\\", "\\")):
        plain = plain.replace(escaped, character)
    if plain == old or plain not in text:
        return ""
    return "it is escaped once too often; write line ends, quotes and all other characters plainly"


def _look_alikes(text: str, old: str) -> str:
    at = text.translate(_ALIKE).find(old.translate(_ALIKE))
    if at < 0:
        return ""
    pairs = dict.fromkeys((a, b) for a, b in zip(text[at : at + len(old)], old, strict=True) if a != b)
    differences = ", ".join(f"{_named(actual)} for your {_named(yours)}" for actual, yours in list(pairs)[:3])
    return f"at line {_line(text, at)} it has characters that look alike: {differences}"


def _composed(text: str, old: str) -> str:
    if unicodedata.normalize("NFC", old) not in unicodedata.normalize("NFC", text):
        return ""
    return "letters with accents are composed in another way there; choose lines without them"


def _done_before(text: str, new: str) -> str:
    at = text.find(new) if len(new.strip()) > 1 else -1
    return f"`new_str` occurs already, at line {_line(text, at)}: was this edit made before?" if at >= 0 else ""


def _near(text: str, old: str) -> str:
    lines, target = text.split("\n"), old.strip("\n").split("\n")
    nearest = _nearest([" ".join(line.split()) for line in lines], [" ".join(line.split()) for line in target])
    if nearest is None:
        return "and nothing like it: view the file first"
    begin = max(0, nearest.start - 1)
    shown = lines[begin : nearest.start + len(target) + 1][:SHOWN_LINES]
    hint = "the nearest lines are"
    if nearest.same_words:
        hint = "only the white space differs (\u2192 is a tab, \u00b7 a space)"
        shown = [_with_marks(line) for line in shown]
    return f"{hint}:\n" + "\n".join(f"{number:6}\t{line}" for number, line in enumerate(shown, begin + 1))


def _nearest(lines: Sequence[str], target: Sequence[str]) -> _Nearest | None:
    """The place where most lines of `target` agree; both are given with single spaces."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for offset, line in enumerate(target):
        if line and len(places[line]) < OFFSETS:
            places[line].append(offset)
    votes = Counter(n - o for n, line in enumerate(lines) for o in places.get(line, ()) if n >= o)
    if votes:
        start = max(votes, key=lambda n: (votes[n], -n))
        return _Nearest(start, same_words=list(lines[start : start + len(target)]) == list(target))
    longest = max(target, key=len)
    index = _most_like(lines, longest)
    return None if index is None else _Nearest(max(0, index - target.index(longest)), same_words=False)


def _most_like(lines: Sequence[str], line: str) -> int | None:
    """The index of the line that is most like this one; None if no line is similar."""
    words = set(re.findall(r"\w+", line))
    shared = {n: len(words & set(re.findall(r"\w+", other))) for n, other in enumerate(lines) if other}
    first = sorted(shared, key=lambda n: (-shared[n], n))[:LIKE_LINES]
    close = difflib.get_close_matches(line, [lines[n] for n in first], n=1, cutoff=LIKENESS)
    return lines.index(close[0]) if close else None


def _with_marks(line: str) -> str:
    """The line with marks for white space that is hard to see or to count."""
    return _UNSEEN.sub(lambda match: match[0].translate(_VISIBLE), line)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _named(character: str) -> str:
    return f"{character!r} (U+{ord(character):04X})"
