"""Claims: whether two sentences say the same, or one the contrary of the other. By their words, without a model."""

from __future__ import annotations

import re

from agent.learning.memory.words import likeness, words

__all__ = ["alike", "opposed"]

ALIKE = 0.7
"""Two sentences are about the same from this likeness of their words on."""
_NEGATION = re.compile(
    r"\b(?:not|never|no|avoid|without|cannot|(?:do|does|must|should|wo|ca|is)n['\u2019]?t)\b", re.IGNORECASE
)
_SAYING = frozenset(words("always must should do does please ever"))
"""Words that say how strongly something is meant, and not what."""


def alike(one: str, other: str) -> bool:
    """Whether two sentences say the same."""
    return _about_the_same(one, other) and _denies(one) == _denies(other)


def opposed(one: str, other: str) -> bool:
    """Whether one sentence denies what the other says. Of what contradicts in other ways than by a negation, nothing is
    known."""
    return _about_the_same(one, other) and _denies(one) != _denies(other)


def _about_the_same(one: str, other: str) -> bool:
    return likeness(_content(one), _content(other)) >= ALIKE


def _content(text: str) -> list[str]:
    return [word for word in words(_NEGATION.sub(" ", text)) if word not in _SAYING]


def _denies(text: str) -> bool:
    """Two negations are none."""
    return len(_NEGATION.findall(text)) % 2 == 1
