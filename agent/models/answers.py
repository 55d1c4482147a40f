"""Ask a model until its answer can be parsed. After a number of retries it counts as abstaining."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from agent.counting import counted
from agent.errors import TooLong
from agent.models import Ask, Message, Model
from agent.prompts import render
from agent.untrusted import short_line

_T = TypeVar("_T")

ANSWER_CHARS = 50_000
"""Only the end of a longer answer is parsed."""
OBJECTS = 100
"""At most this many opening braces are tried, from the end."""
LINES = 20
"""Items read from a list; later ones are dropped."""
LINE_CHARACTERS = 400
SEED = 0
"""The seed for a question that every run asks once and in the same words."""
RETRIES = 2
"""How often a model is asked again by default after an answer that cannot be read."""
LENGTHS = (1.0, 0.25, 0.06)
"""Fractions of the untrusted text that a question shows, tried in order until it fits the model's context."""

Question = Callable[[float], Sequence[Message]]
"""Builds a conversation that ends with a question, from the fraction, in (0, 1], of the text that it may show."""


def system_and_user(system: str, text: str) -> list[Message]:
    """The messages that open a conversation: the system prompt and what the user asks."""
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


class Unreadable(Exception):
    """An answer cannot be parsed. The message tells the model what is wrong."""


class Abstained(Exception):
    """A model gave no readable answer, or may not be asked. The message says why."""


def ask_until_readable(
    ask: Ask,
    model: Model,
    messages: Sequence[Message],
    read: Callable[[str], _T],
    retries: int = RETRIES,
    seed: int = SEED,
) -> _T:
    """The result of `read` for the model's answer. When `read` raises `Unreadable`, the model is told the problem and
    asked again, at most `retries` times.

    Raises:
        Abstained: no answer could be read.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    conversation, problem = list(messages), ""
    for _ in range(retries + 1):
        answer = ask(model, conversation, seed=seed)
        try:
            return read(answer.text[-ANSWER_CHARS:])
        except Unreadable as why:
            problem = str(why)
            request = render("mend", problem=problem, cut_off=answer.finish_reason == "length")
            conversation.append({"role": "assistant", "content": answer.text or "(nothing)"})
            conversation.append({"role": "user", "content": request})
    answers = counted(retries + 1, "answer")
    raise Abstained(f"{model.name} gave {answers} that cannot be read; the last problem: {problem}")


def ask_within_context(
    ask: Ask, model: Model, question: Question, read: Callable[[str], _T], retries: int = RETRIES, seed: int = SEED
) -> _T:
    """As `ask_until_readable`; a question that is too long for the model is repeated in a shorter form.

    Raises:
        Abstained: no answer could be read, or even the shortest form is too long.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    for length in LENGTHS:
        try:
            return ask_until_readable(ask, model, question(length), read, retries, seed)
        except TooLong as error:
            too_long = error
    raise Abstained(str(too_long))


def last_object(text: str, key: str) -> dict[str, Any]:
    """The last JSON object with this key in a text, whatever surrounds it.

    Raises:
        Unreadable: there is no such object.
    """
    decoder = json.JSONDecoder()
    starts = [brace.start() for brace in re.finditer("{", text)]
    for start in reversed(starts[-OBJECTS:]):
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and key in value:
            return value
    raise Unreadable(f"there is no JSON object with the key `{key}` in it")


def words_in(answer: Mapping[str, Any], key: str, problem: str) -> str:
    """The text under a key of an answer.

    Raises:
        Unreadable: the key has no text, or only white space; the message is `problem`.
    """
    text = answer.get(key)
    if not isinstance(text, str) or not text.strip():
        raise Unreadable(problem)
    return text


def number_in(answer: Mapping[str, Any], key: str, most: int) -> float:
    """The number under a key of an answer, from 0 to `most`.

    Raises:
        Unreadable: there is no such number.
    """
    number = answer.get(key)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= most:
        raise Unreadable(f"`{key}` is {str(number)[:40]!r}: give a number from 0 to {most}")
    return float(number)


def last_of(kind: type[_T], text: str, key: str) -> _T:
    """The last JSON object with this key in a text, as an instance of the dataclass `kind`. Types must match strictly,
    fields with defaults may be missing, and other keys are errors.

    Raises:
        Unreadable: there is no such object, or it does not match `kind`.
    """
    from pydantic import TypeAdapter, ValidationError

    value = last_object(text, key)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # `kind` is a dataclass
    if unknown := [name for name in value if name not in names]:
        raise Unreadable(f"it has the key `{unknown[0][:40]}`: it may have {', '.join(names)}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the object"
        raise Unreadable(f"`{where}`: {first['msg']}") from wrong


def line(text: str) -> str:
    """A model's text as one printable line, cut to LINE_CHARACTERS, with a mark where it is cut."""
    return short_line(text, LINE_CHARACTERS)


def lines(texts: Sequence[str]) -> tuple[str, ...]:
    """The first LINES nonempty texts, each as one `line`."""
    return tuple(shown for text in texts if (shown := line(text)))[:LINES]


def words(text: str) -> str:
    """An answer in words, stripped.

    Raises:
        Unreadable: it is empty.
    """
    if not text.strip():
        raise Unreadable("it is empty")
    return text.strip()
