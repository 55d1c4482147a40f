"""A debate about a state: one speech for it, one against it, and a verdict on both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import case_messages, speech
from agent.evaluate.value.judge import read_verdict, require_retries
from agent.evaluate.value.weighing import Opinion, hear, judged
from agent.models import Model
from agent.models.answers import words
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class Debate:
    """Three requests per state: two independent speeches, and the verdict, which is the opinion.

    R-MCTS values states by such a debate (ExACT, arXiv 2410.02052).
    """

    model: Model
    max_retries: int = 2
    """Retries of one question after unreadable answers; after that the debate abstains."""

    def __post_init__(self) -> None:
        require_retries(self.max_retries)

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the verdict."""
        return judged(case, {"debate": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """The verdict of a debate about a state.

        Raises:
            agent.models.answers.Abstained: a speech or the verdict is unreadable.
        """
        speeches = {f"speech_{side}": speech(side, self._speech(case, tests, side)) for side in ("for", "against")}
        question = partial(case_messages, case, tests, render("debate_verdict", **speeches))
        return hear(case, self.model, question, lambda text: read_verdict(text, "A debate"), self.max_retries)

    def _speech(self, case: EvaluationInput, tests: Evaluation, side: str) -> str:
        question = partial(case_messages, case, tests, render("debate_speech", side=side))
        return hear(case, self.model, question, words, self.max_retries)
