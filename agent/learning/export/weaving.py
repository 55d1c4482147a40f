"""Weaving: turns in a row as one conversation, with the loss on for each answer once.

Law: an answer stands after the messages that it was really given to. Where a later prompt does not go on from what was
said before (old results were left out, an unreadable answer was mended), a new conversation begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent.learning.export.turns import Turn
from agent.models import Message

__all__ = ["Woven", "silent", "weave", "whole"]


@dataclass(slots=True)
class Woven:
    """A conversation. `"train": false` in a message of the assistant turns the loss off for it."""

    messages: list[Message]
    turns: list[Turn]
    """Those whose answers have the loss on."""


def weave(turns: Sequence[Turn], trains: Callable[[Turn], bool]) -> Iterator[Woven]:
    """The conversations that the turns of a branch make, without those in which nothing is trained. `trains` says
    whether a turn's answer has the loss on."""
    woven = Woven([], [])
    for turn in turns:
        said = [_heard(message) for message in woven.messages]
        if list(turn.prompt[: len(said)]) != said:
            if woven.turns:
                yield woven
            woven, said = Woven([], []), []
        woven.messages.extend(silent(message) for message in turn.prompt[len(said) :])
        if trains(turn):
            woven.messages.append(turn.answer)
            woven.turns.append(turn)
        else:
            woven.messages.append(silent(turn.answer))
    if woven.turns:
        yield woven


def silent(message: Message) -> Message:
    """The message with the loss off; others than the assistant's have none."""
    return {**message, "train": False} if message["role"] == "assistant" else message


def _heard(message: Message) -> Message:
    return {key: value for key, value in message.items() if key != "train"}


def whole(turns: Sequence[Turn]) -> list[Message]:
    """All that was said from the first answer of some turns to the last."""
    first, last = turns[0].prompt, turns[-1].prompt
    if last[: len(first)] == first:
        return [*last[len(first) :], turns[-1].answer]
    return [message for turn in turns[:-1] for message in (turn.answer, *turn.results)] + [turns[-1].answer]
