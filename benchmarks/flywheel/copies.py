"""Copies: whether a function is one of some functions, or nearly a copy of one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from agent.export.duplicates import likeness, sketch, words
from benchmarks.synthetic.functions import LEAST_WORDS, NEAR

__all__ = ["Copies"]


class Copies:
    """Remembers functions, as of `benchmarks.synthetic.functions.normal`."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._sketches = [sketch(said) for text in sorted(self._texts) if len(said := words(text)) >= LEAST_WORDS]
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        for number, each in enumerate(self._sketches):
            for part in each:
                self._holders[part].append(number)

    def hold(self, text: str) -> bool:
        """Whether one of the functions is like this one; a short one is only like itself."""
        if text in self._texts:
            return True
        said = words(text)
        if len(said) < LEAST_WORDS:
            return False
        mine = sketch(said)
        shared = Counter(number for part in mine for number in self._holders.get(part, ()))
        return any(
            count >= NEAR * min(len(mine), len(self._sketches[number])) / 2
            and likeness(mine, self._sketches[number]) >= NEAR
            for number, count in shared.items()
        )
