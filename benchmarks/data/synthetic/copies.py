"""Finds functions that are copies, or near copies, of each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from agent.learning.export.duplicates import likeness, sketch, words

NEAR = 0.7
"""Functions with at least this share of common word triples are near copies."""
LEAST_WORDS = 20
"""Functions with fewer words are copies only if they are the same."""


class Copies:
    """A collection of functions, as text from `benchmarks.data.synthetic.functions.normal`, numbered from 0 in
    order."""

    def __init__(self, texts: Iterable[str] = (), near: float = NEAR) -> None:
        """`near` is in (0, 1]."""
        self._near = near
        self._count = 0
        self._same: dict[str, int] = {}
        self._sketches: dict[int, frozenset[int]] = {}
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        for text in texts:
            self.meet(text)

    def hold(self, text: str) -> bool:
        """Whether the collection has a copy or near copy of this function."""
        return text in self._same or any(True for _ in self._near_copies(_sketch(text)))

    def meet(self, text: str) -> list[int]:
        """Add a function. Returns its earlier copies: the first that is the same, and all near copies."""
        number, mine = self._count, _sketch(text)
        copies = [*({self._same[text]} if text in self._same else ()), *self._near_copies(mine)]
        self._count += 1
        self._same.setdefault(text, number)
        if mine:
            self._sketches[number] = mine
            for part in mine:
                self._holders[part].append(number)
        return copies

    def _near_copies(self, mine: frozenset[int]) -> Iterator[int]:
        common = Counter(number for part in mine for number in self._holders.get(part, ()))
        for number, shared in common.items():
            theirs = self._sketches[number]
            if shared >= self._near * min(len(mine), len(theirs)) / 2 and likeness(mine, theirs) >= self._near:
                yield number


def _sketch(text: str) -> frozenset[int]:
    """The sketch of a text; empty for a short one."""
    all_words = words(text)
    return sketch(all_words) if len(all_words) >= LEAST_WORDS else frozenset()
