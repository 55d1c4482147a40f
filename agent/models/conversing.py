"""Conversing: a model is asked until its answer can be read, so many times, and else abstains."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from agent.errors import TooLong
from agent.models import Ask, Message, Model
from agent.prompts import render
from agent.untrusted import one_line

__all__ = [
    "LINE_CHARACTERS",
    "Abstained",
    "Question",
    "Unreadable",
    "converse",
    "inquire",
    "last_object",
    "last_of",
    "line",
    "lines",
    "words",
]

_T = TypeVar("_T")

ANSWER_CHARS = 50_000
"""Only the end of a longer answer is read."""
OBJECTS = 100
"""So many braces are looked behind, from the end."""
LINES = 20
"""Of a list; those after them are left out."""
LINE_CHARACTERS = 400
SEED = 0
"""Of a question that is asked once, and in the same words by every run."""
LENGTHS = (1.0, 0.25, 0.06)
"""Shares of what strangers wrote that a question shows, until the model has room for it."""

Question = Callable[[float], Sequence[Message]]
"""A conversation that ends with a question, with such a share, in (0, 1], of the text that it may show."""


class Unreadable(Exception):
    """An answer cannot be read. The message tells the model what it has to be."""


class Abstained(Exception):
    """A model has no opinion that could be read, or may not be asked. The message says why."""


def converse(
    ask: Ask, model: Model, messages: Sequence[Message], read: Callable[[str], _T], mends: int, seed: int = SEED
) -> _T:
    """What `read` makes of the model's answer. One that it cannot read (it raises `Unreadable`) is answered with how to
    mend it, `mends` times at most.

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
            mend = render("mend", problem=problem, cut_off=answer.finish_reason == "length")
            said += [{"role": "assistant", "content": answer.text or "(nothing)"}, {"role": "user", "content": mend}]
    raise Abstained(f"{model.name} gave {mends + 1} answers that cannot be read; the last problem: {problem}")


def inquire(ask: Ask, model: Model, question: Question, read: Callable[[str], _T], mends: int, seed: int = SEED) -> _T:
    """As `converse`; a question that is too long for the model is put in a shorter form.

    Raises:
        Abstained: no answer could be read, or the model has no room for the shortest form.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    for length in LENGTHS:
        try:
            return converse(ask, model, question(length), read, mends, seed)
        except TooLong as error:
            too_long = error
    raise Abstained(str(too_long))


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


def last_of(kind: type[_T], text: str, key: str) -> _T:
    """The last JSON object in a text that has this key, as a dataclass, whose types it has to have to the letter. What
    has a default may be left out, and nothing else may be there.

    Raises:
        Unreadable: there is no such object, or it does not match `kind`.
    """
    from pydantic import TypeAdapter, ValidationError

    given = last_object(text, key)
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # a dataclass, as is said above
    if unknown := [name for name in given if name not in known]:
        raise Unreadable(f"it has the key `{unknown[0][:40]}`: it may have {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(given), strict=True)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the object"
        raise Unreadable(f"`{where}`: {first['msg']}") from wrong


def line(text: str) -> str:
    """A model's words as one line that can be shown, cut to its limit."""
    return one_line(text)[:LINE_CHARACTERS]


def lines(texts: Sequence[str]) -> tuple[str, ...]:
    """The same of each that says something, as many as are read."""
    return tuple(said for text in texts if (said := line(text)))[:LINES]


def words(text: str) -> str:
    """An answer in words.

    Raises:
        Unreadable: it says nothing.
    """
    if not text.strip():
        raise Unreadable("it is empty")
    return text.strip()
