"""Ranking texts by the words that they share with a query: Okapi BM25, with the usual constants."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Corpus"]

SATURATION = 1.2
"""k1: how soon a word that is there again and again counts no more."""
LENGTH = 0.75
"""b in [0, 1]: how much longer texts are held back."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Some texts, as far as a query is concerned."""

    size: int
    """How many texts there are, those without any word of the query included."""
    mean_length: float
    """In words."""
    postings: Sequence[tuple[str, str, int, int]]
    """A word of the query, a text that has it, how often, and how many words that text has."""

    def scores(self, least_words: int = 1) -> dict[str, float]:
        """By text, the best first and the smaller name among equals; those that share at least so many words."""
        having: defaultdict[str, int] = defaultdict(int)
        for word, *_ in self.postings:
            having[word] += 1
        scores: defaultdict[str, float] = defaultdict(float)
        shared: defaultdict[str, int] = defaultdict(int)
        for word, text, count, length in sorted(self.postings):
            rare = math.log(1 + (self.size - having[word] + 0.5) / (having[word] + 0.5))
            worn = SATURATION * (1 - LENGTH + LENGTH * length / self.mean_length)
            scores[text] += rare * count * (SATURATION + 1) / (count + worn)
            shared[text] += 1
        found = [text for text in scores if shared[text] >= least_words]
        return {text: scores[text] for text in sorted(found, key=lambda text: (-scores[text], text))}
