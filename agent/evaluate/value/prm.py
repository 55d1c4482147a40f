"""A process reward model as value: a trained verifier says how likely a state leads to a right solution.

The verifier is a generative one (arXiv 2408.15240): it is asked a question, and the probability that it answers "yes"
rather than "no" is the reward. `ramify export --format verifier` writes the rows that teach it, from the same text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.budget import BudgetSpent
from agent.errors import PolicyError, TooLong
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import shown_candidate, shown_issue
from agent.evaluate.value.weighing import Opinion, judged
from agent.measure import SuiteReport
from agent.models import Message, Model
from agent.models.answers import Abstained
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation
from agent.task import Task

ANSWERS = ("yes", "no")
ASKED: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
LENGTHS = (1.0, 0.5, 0.2)
"""The fractions of the question that are tried in turn, until one fits the model's context."""


@dataclass(frozen=True, slots=True)
class Prm:
    """One request per state. The value is the test-based value, raised by the probability that the state leads to a
    right solution (`agent.evaluate.value.weighing`). The policy's model is not told this probability. ReST-MCTS* has
    such a value (arXiv 2406.03816)."""

    model: Model
    """The verifier. Its server has to return the log-probabilities of the likeliest tokens, as vLLM does."""

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the reward."""
        return judged(case, {"prm": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """The reward of a state.

        Raises:
            agent.models.answers.Abstained: the model may not be asked, the question is too long for it, or its
                server gives no probabilities.
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        if case.ask is None:
            raise Abstained("no model may be asked here")
        for length in LENGTHS:
            text = verifier_question(case.task, case.path[0].report, case.report, case.patch(), tests.notes, length)
            message: Message = {"role": "user", "content": text}
            try:
                return Opinion(_share(case.ask(self.model, [message], **ASKED).first))
            except TooLong as error:
                problem = str(error)
            except (BudgetSpent, PolicyError) as error:
                raise Abstained(str(error)) from error
        raise Abstained(problem)


def verifier_question(
    task: Task, before: SuiteReport, after: SuiteReport, patch: bytes, notes: str, length: float = 1.0
) -> str:
    """The question to the verifier about a state with this patch against the base state, whose report is `before`.
    `notes`: what the tests say about the state, in words. `length`, in (0, 1], scales all limits."""
    candidate = shown_candidate(before, after, patch, notes, length)
    return render("verifier", issue=shown_issue(task, length), candidate=candidate).strip()


def _share(first: Mapping[str, float]) -> float:
    """The probability of "yes", if the answer begins with one of the two words.

    Raises:
        Abstained: neither is among the likeliest tokens.
    """
    yes, no = (sum(math.exp(p) for token, p in first.items() if token.strip().lower() == word) for word in ANSWERS)
    if not yes + no:
        raise Abstained("the server gives no log-probability of yes or no as the first token (`top_logprobs`)")
    return yes / (yes + no)
