"""Turns that repeat themselves: the same calls with the same results, time after time."""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Sequence
from dataclasses import replace

from agent.actions import Action, Edit, Search, Shell, View, Write
from agent.tree import Step

__all__ = ["canonical", "times"]

LONGEST_ROUND = 3
"""Turns that are taken in turn and still count as one repetition: a, b, c, a, b, c."""


def times(turns: Sequence[Step]) -> int:
    """How many times in a row the last turn, or the last round of up to three turns, was taken with the same results;
    0 when there is no turn."""
    keys = [_key(step) for step in turns]
    return max((_rounds(keys, length) for length in range(1, LONGEST_ROUND + 1)), default=0)


def canonical(action: Action) -> Action:
    """The same for two actions that differ in spelling only: white space, `./`, how long is waited."""
    match action:
        case Shell():
            return Shell(" ".join(action.command.split()))
        case View() | Search() | Edit() | Write():
            return replace(action, path=posixpath.normpath(action.path))
        case _:
            return action


def _key(step: Step) -> Hashable:
    """Equal for turns that did and saw the same. What was said with it does not matter."""
    return tuple(map(canonical, step.actions)), tuple(seen.text for seen in step.observations)


def _rounds(keys: Sequence[Hashable], length: int) -> int:
    last, count = keys[-length:], 0
    while keys[len(keys) - length * (count + 1) :][:length] == last and len(keys) >= length * (count + 1):
        count += 1
    return count
