"""Copies: which of some functions another one is, or is nearly a copy of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from agent.learning.export.duplicates import likeness, sketch, words

__all__ = ["LEAST_WORDS", "NEAR", "Copies"]

NEAR = 0.7
"""Functions of which so many word triples are common are nearly copies."""
LEAST_WORDS = 20
"""Shorter ones are only if they are the same."""


class Copies:
    """Remembers functions, as of `benchmarks.data.synthetic.functions.normal`, by numbers from 0 in their order."""

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
        """Whether one of the functions is like this one."""
        return text in self._same or any(True for _ in self._alike(_sketch(text)))

    def meet(self, text: str) -> list[int]:
        """Those that are like this one, which is one of them from now on: the first that is the same, and near ones."""
        number, mine = self._count, _sketch(text)
        found = [*({self._same[text]} if text in self._same else ()), *self._alike(mine)]
        self._count += 1
        self._same.setdefault(text, number)
        if mine:
            self._sketches[number] = mine
            for part in mine:
                self._holders[part].append(number)
        return found

    def _alike(self, mine: frozenset[int]) -> Iterator[int]:
        common = Counter(number for part in mine for number in self._holders.get(part, ()))
        for number, shared in common.items():
            theirs = self._sketches[number]
            if shared >= self._near * min(len(mine), len(theirs)) / 2 and likeness(mine, theirs) >= self._near:
                yield number


def _sketch(text: str) -> frozenset[int]:
    """Of a short text, nothing."""
    said = words(text)
    return sketch(said) if len(said) >= LEAST_WORDS else frozenset()
