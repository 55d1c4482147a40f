"""The words that texts are compared by. Parts of identifiers count as words, and common endings are removed.

Invariant: the same text gives the same words on every machine, without a network or a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_WORD = re.compile(r"[^\W\d_]\w*(?:_\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_COMMON = (
    "a an and are as at be been but by can could do does for from had has have how i if in into is it its me my "
    "of on or our so than that the their them then there these they this to was we were what when where which while "
    "who why will with would you your"
)
_STOP = frozenset(_COMMON.split())
_ENDINGS = ("ing", "ed")


def words(text: str) -> list[str]:
    """The words of a text in order: `parseHTTPHeader` is `parsehttpheader`, `pars`, `http` and `header`. Numbers and
    the commonest English words are left out."""
    kept: list[str] = []
    for match in _WORD.finditer(text):
        parts = [_stem(part.lower()) for part in _PART.findall(match[0])]
        whole = [match[0].lower()] if len(parts) > 1 else []
        kept += [word for word in (*whole, *parts) if word not in _STOP and len(word) > 1]
    return kept


def pairs(text: str) -> frozenset[tuple[str, str]]:
    """All pairs of adjacent words: the share that two texts have in common measures copying."""
    return frozenset(pairwise(words(text)))


def likeness(one: Sequence[str], other: Sequence[str]) -> float:
    """The Jaccard index of two sets of words, in [0, 1]; 0 when both are empty."""
    first, second = frozenset(one), frozenset(other)
    return len(first & second) / len(first | second) if first or second else 0.0


def _stem(word: str) -> str:
    """The word without common endings, so that `raises`, `raised` and `raising` are the same."""
    if not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word[: -len(ending)]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word
