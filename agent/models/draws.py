"""Draws: several answers to one question in one request, for those who waited together and differ in the seed alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.budget import Usage
from agent.errors import ModelError, RamifyError, Stopped, ToolsRefused
from agent.models import Completion
from agent.models.pace import Pace, Turn
from agent.models.retry import Transient

__all__ = ["draw"]

log = logging.getLogger(__name__)


def draw(turn: Turn, pace: Pace, ask: Callable[[int], Sequence[Completion]]) -> Completion:
    """The first of the answers that `ask` gets of so many at once; the others are for those who go with this turn. A
    provider that refuses several, or gives fewer, is remembered, and asked for one, which bears what the refusal cost.

    Raises:
        agent.errors.RamifyError, agent.models.retry.Transient: as `ask`.
    """
    first, *further = _answers(turn, ask)
    for other, answer in zip(turn.others, further, strict=False):
        other.answer = answer
    if len(further) < len(turn.others):
        pace.several = False
    return first


def _answers(turn: Turn, ask: Callable[[int], Sequence[Completion]]) -> Sequence[Completion]:
    if not turn.others:
        return ask(1)
    try:
        return ask(1 + len(turn.others))
    except ModelError as refusal:
        if isinstance(refusal, (Stopped, ToolsRefused)):
            raise
        log.info("several answers at once are not asked for any more: %s", refusal)
        lost = refusal.usage
    return [_after(lost, ask)]


def _after(lost: Usage, ask: Callable[[int], Sequence[Completion]]) -> Completion:
    """One answer; its usage, or that of the error, holds what was lost before."""
    try:
        first = ask(1)[0]
    except (RamifyError, Transient) as error:
        error.usage += lost
        raise
    return replace(first, usage=lost + first.usage)
