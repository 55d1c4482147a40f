"""Batched draws: one request for several answers, for requests that waited together and differ only in their seeds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.errors import ModelError, RamifyError, Stopped, ToolsRefused
from agent.models import Completion
from agent.models.pace import Pace, Slot
from agent.models.retry import Transient

log = logging.getLogger(__name__)


def draw(slot: Slot, pace: Pace, ask: Callable[[int], Sequence[Completion]]) -> Completion:
    """Get answers with `ask(count)` for a slot and the slots that wait with it; return the first and hand out the
    others. A provider that refuses several answers is asked for one, whose usage includes that of the refusal. It is
    not asked for several again, nor is a provider that returned fewer.

    Raises:
        agent.errors.RamifyError, agent.models.retry.Transient: as `ask`.
    """
    first, *further = _answers(slot, ask)
    for other, answer in zip(slot.others, further, strict=False):
        other.answer = answer
    if len(further) < len(slot.others):
        pace.several = False
    return first


def _answers(slot: Slot, ask: Callable[[int], Sequence[Completion]]) -> Sequence[Completion]:
    if not slot.others:
        return ask(1)
    try:
        return ask(1 + len(slot.others))
    except ModelError as refusal:
        if isinstance(refusal, (Stopped, ToolsRefused)):
            raise
        log.info("the provider refused several answers in one request; asking for one at a time: %s", refusal)
        spent = refusal.usage
    try:
        answer = ask(1)[0]
    except (RamifyError, Transient) as error:
        error.usage += spent
        raise
    return [replace(answer, usage=spent + answer.usage)]
