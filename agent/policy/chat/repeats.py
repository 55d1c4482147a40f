"""Detects turns that repeat themselves."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from agent.actions.canonical import respelled
from agent.run.tree.node import Step

LONGEST_CYCLE = 3
"""The longest sequence of turns that is recognised as repeating: a, b, c, a, b, c."""


def times(turns: Sequence[Step]) -> int:
    """How many times in a row the last turn, or the last sequence of up to three turns, was taken with the same
    results; 0 if there are no turns."""
    keys = [_key(step) for step in turns]
    return max(_repetitions(keys, length) for length in range(1, LONGEST_CYCLE + 1))


def _key(step: Step) -> Hashable:
    """Equal for turns with the same actions and observations; the model's words do not matter."""
    return tuple(map(respelled, step.actions)), tuple(observation.text for observation in step.observations)


def _repetitions(keys: Sequence[Hashable], length: int) -> int:
    last, count = keys[-length:], 0
    while keys[len(keys) - length * (count + 1) :][:length] == last and len(keys) >= length * (count + 1):
        count += 1
    return count
