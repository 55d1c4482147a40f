"""Draws: several answers to one question in one request, for those who waited together and differ in the seed alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from agent.errors import ModelError, Stopped, ToolsRefused
from agent.models import Completion
from agent.models.pace import Pace, Turn

__all__ = ["draw"]

log = logging.getLogger(__name__)


def draw(turn: Turn, pace: Pace, ask: Callable[[int], Sequence[Completion]]) -> Completion:
    """The first of the answers that `ask` gets of so many at once; the others are for those who go with this turn. A
    provider that refuses several, or gives fewer, is remembered, and asked for one.

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
    if turn.others:
        try:
            return ask(1 + len(turn.others))
        except ModelError as refusal:
            if isinstance(refusal, (Stopped, ToolsRefused)):
                raise
            log.info("several answers at once are not asked for any more: %s", refusal)
    return ask(1)[:1]
