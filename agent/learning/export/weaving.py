"""Joins consecutive turns into one conversation, with the loss on for each answer once.

Invariant: an answer follows the messages that it actually answered. If a later prompt does not continue the
conversation (old results were left out, an unreadable answer was corrected), a new conversation begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.learning.export.turns import Turn
from agent.models import Message


@dataclass(slots=True)
class Woven:
    """A conversation. `"train": false` in an assistant message turns the loss off for it."""

    messages: list[Message]
    turns: list[Turn]
    """The turns whose answers have the loss on."""


def weave(turns: Sequence[Turn], trains: Callable[[Turn], bool]) -> Iterator[Woven]:
    """The conversations of a branch's turns, without those in which nothing is trained. `trains` tells whether a turn's
    answer has the loss on."""
    woven = Woven([], [])
    for turn in turns:
        before = [{key: value for key, value in message.items() if key != "train"} for message in woven.messages]
        if list(turn.prompt[: len(before)]) != before:
            if woven.turns:
                yield woven
            woven, before = Woven([], []), []
        woven.messages.extend(silent(message) for message in turn.prompt[len(before) :])
        if trains(turn):
            woven.messages.append(turn.answer)
            woven.turns.append(turn)
        else:
            woven.messages.append(silent(turn.answer))
    if woven.turns:
        yield woven


def silent(message: Message) -> Message:
    """The message with the loss off. Only assistant messages are marked."""
    return {**message, "train": False} if message["role"] == "assistant" else message


def whole(turns: Sequence[Turn]) -> list[Message]:
    """All messages from the first answer of some turns to the last."""
    first, last = turns[0].prompt, turns[-1].prompt
    if last[: len(first)] == first:
        return [*last[len(first) :], turns[-1].answer]
    return [message for turn in turns[:-1] for message in (turn.answer, *turn.results)] + [turns[-1].answer]
