"""Hearing a model out on a case: what it may be shown is cut until it has room for it, and else it abstains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from agent.budget import BudgetSpent
from agent.errors import PolicyError, TooLong
from agent.models import Message, Model
from agent.models.conversing import Abstained, converse
from agent.value import Case

__all__ = ["Question", "hear"]

_T = TypeVar("_T")

LENGTHS = (1.0, 0.25, 0.06)
"""Shares of what strangers wrote that a question shows, until the model has room for it."""

Question = Callable[[float], Sequence[Message]]
"""A conversation that ends with a question, with such a share, in (0, 1], of the text that it may show."""


def hear(case: Case, model: Model, question: Question, read: Callable[[str], _T], mends: int) -> _T:
    """As `agent.models.conversing.converse`; a question that is too long for the model is put in a shorter form.

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
