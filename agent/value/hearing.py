"""Hearing a model out: it is asked until its answer can be read, so many times, and else abstains."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.budget import BudgetSpent
from agent.errors import PolicyError, TooLong
from agent.models import Ask, Message, Model
from agent.prompts import render
from agent.value import Case

__all__ = ["Abstained", "Question", "Unreadable", "converse", "hear", "last_object", "words"]

_T = TypeVar("_T")

ANSWER_CHARS = 50_000
"""Only the end of a longer answer is read."""
LENGTHS = (1.0, 0.25, 0.06)
"""Shares of what strangers wrote that a question shows, until the model has room for it."""
OBJECTS = 100
"""So many braces are looked behind, from the end."""
SEED = 0
"""Of every question: a state is asked about once, and in the same words by every run."""


Question = Callable[[float], Sequence[Message]]
"""A conversation that ends with a question, with such a share, in (0, 1], of the text that it may show."""


class Unreadable(Exception):
    """An answer cannot be read. The message tells the model what it has to be."""


class Abstained(Exception):
    """A model has no opinion that could be read, or may not be asked. The message says why."""


def hear(case: Case, model: Model, question: Question, read: Callable[[str], _T], mends: int) -> _T:
    """What `read` makes of the model's answer. One that it cannot read (it raises `Unreadable`) is answered with how
    to mend it, `mends` times at most. A question that is too long for the model is put in a shorter form.

    Raises:
        Abstained: no answer could be read, or no model may be asked.
        agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
    """
    if case.ask is None:
        raise Abstained("no model may be asked here")
    for length in LENGTHS:
        try:
            return converse(case.ask, model, question(length), read, mends)
        except TooLong as error:
            too_long = error
        except (BudgetSpent, PolicyError) as error:
            raise Abstained(str(error)) from error
    raise Abstained(str(too_long))


def converse(
    ask: Ask, model: Model, messages: Sequence[Message], read: Callable[[str], _T], mends: int, seed: int = SEED
) -> _T:
    """As `hear`, of a conversation that is as short as it can be.

    Raises:
        Abstained: no answer could be read.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    said, problem = list(messages), ""
    for _ in range(mends + 1):
        answer = ask(model, said, seed=seed)
        try:
            return read(answer.text[-ANSWER_CHARS:])
        except Unreadable as why:
            problem = str(why)
            mend = render("judge_mend", problem=problem, cut_off=answer.finish_reason == "length")
            said += [{"role": "assistant", "content": answer.text or "(nothing)"}, {"role": "user", "content": mend}]
    raise Abstained(f"{model.name} gave {mends + 1} answers that cannot be read; the last problem: {problem}")


def last_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object in a text that has this key, whatever stands around it.

    Raises:
        Unreadable: there is none.
    """
    decoder = json.JSONDecoder()
    starts = [brace.start() for brace in re.finditer("{", text)]
    for start in reversed(starts[-OBJECTS:]):
        try:
            found, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and key in found:
            return found
    raise Unreadable(f"there is no JSON object with the key `{key}` in it")


def words(text: str) -> str:
    """An answer in words.

    Raises:
        Unreadable: it says nothing.
    """
    if not text.strip():
        raise Unreadable("it is empty")
    return text.strip()
