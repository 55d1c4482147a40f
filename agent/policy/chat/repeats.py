"""Turns that repeat themselves."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from agent.actions.canonical import respelled
from agent.run.tree.tree import Step

__all__ = ["times"]

LONGEST_ROUND = 3
"""Turns that are taken in turn and still count as one repetition: a, b, c, a, b, c."""


def times(turns: Sequence[Step]) -> int:
    """How many times in a row the last turn, or the last round of up to three turns, was taken with the same results;
    0 when there is no turn."""
    keys = [_key(step) for step in turns]
    return max((_rounds(keys, length) for length in range(1, LONGEST_ROUND + 1)), default=0)


def _key(step: Step) -> Hashable:
    """Equal for turns that did and saw the same. What was said with it does not matter."""
    return tuple(map(respelled, step.actions)), tuple(seen.text for seen in step.observations)


def _rounds(keys: Sequence[Hashable], length: int) -> int:
    last, count = keys[-length:], 0
    while keys[len(keys) - length * (count + 1) :][:length] == last and len(keys) >= length * (count + 1):
        count += 1
    return count
