"""Ask a model about a case. It abstains if it may not be asked or the question is too long for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from agent.budget import BudgetSpent
from agent.errors import PolicyError
from agent.evaluate.value import EvaluationInput
from agent.models import Model
from agent.models.conversing import Abstained, Question, inquire

__all__ = ["hear"]

_T = TypeVar("_T")


def hear(case: EvaluationInput, model: Model, question: Question, read: Callable[[str], _T], mends: int) -> _T:
    """As `agent.models.conversing.inquire`.

    Raises:
        Abstained: no answer could be read, or no model may be asked.
        agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
    """
    if case.ask is None:
        raise Abstained("no model may be asked here")
    try:
        return inquire(case.ask, model, question, read, mends)
    except (BudgetSpent, PolicyError) as error:
        raise Abstained(str(error)) from error
