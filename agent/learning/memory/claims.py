"""Whether two sentences say the same or contradict each other, judged by their words without a model."""

from __future__ import annotations

import re

from agent.learning.memory.words import likeness, words

SAME_TOPIC = 0.7
"""From this word likeness on, two sentences are about the same thing."""
_NEGATION = re.compile(
    r"\b(?:not|never|no|avoid|without|cannot|(?:do|does|must|should|wo|ca|is)n['\u2019]?t)\b", re.IGNORECASE
)
_EMPHASIS = frozenset(words("always must should do does please ever"))
"""Words of emphasis, which do not change what is said."""


def alike(one: str, other: str) -> bool:
    """Whether two sentences say the same."""
    return _about_the_same(one, other) and _denies(one) == _denies(other)


def opposed(one: str, other: str) -> bool:
    """Whether one sentence negates the other. Contradictions without a negation are not recognized."""
    return _about_the_same(one, other) and _denies(one) != _denies(other)


def _about_the_same(one: str, other: str) -> bool:
    return likeness(_content(one), _content(other)) >= SAME_TOPIC


def _content(text: str) -> list[str]:
    return [word for word in words(_NEGATION.sub(" ", text)) if word not in _EMPHASIS]


def _denies(text: str) -> bool:
    """Whether the text has an odd number of negations."""
    return len(_NEGATION.findall(text)) % 2 == 1
