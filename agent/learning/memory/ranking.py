"""Ranks texts by the words that they share with a query: Okapi BM25 with the usual constants."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

SATURATION = 1.2
"""k1: how soon further occurrences of a word stop counting."""
LENGTH = 0.75
"""b in [0, 1]: how strongly long texts are penalized."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The statistics of some texts that a query needs."""

    size: int
    """The number of texts, including those without a word of the query."""
    mean_length: float
    """In words."""
    postings: Sequence[tuple[str, str, int, int]]
    """A word of the query, a text with it, how often it occurs there, and the number of words in that text."""

    def scores(self, least_words: int = 1) -> dict[str, float]:
        """The score of each text that shares at least `least_words` words, best first; ties by name."""
        texts_with = Counter(word for word, *_ in self.postings)
        scores: defaultdict[str, float] = defaultdict(float)
        shared = Counter(text for _, text, *_ in self.postings)
        for word, text, count, length in sorted(self.postings):
            rarity = math.log(1 + (self.size - texts_with[word] + 0.5) / (texts_with[word] + 0.5))
            damping = SATURATION * (1 - LENGTH + LENGTH * length / self.mean_length)
            scores[text] += rarity * count * (SATURATION + 1) / (count + damping)
        matches = [text for text in scores if shared[text] >= least_words]
        return {text: scores[text] for text in sorted(matches, key=lambda text: (-scores[text], text))}
