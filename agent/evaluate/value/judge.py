"""A model judges a state by its patch, its tests and the task: two numbers, a verdict and an assessment in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import assessment, case_messages
from agent.evaluate.value.hearing import hear
from agent.evaluate.value.weighing import VERDICTS, Opinion, judged
from agent.models import Model
from agent.models.conversing import Unreadable, last_object
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation

__all__ = ["Judge", "read_verdict", "require_mends"]


@dataclass(frozen=True, slots=True)
class Judge:
    """One question a state. The value is the one by tests, lifted by the judge's number
    (`agent.evaluate.value.weighing`).

    The number together with an assessment that later attempts are shown is SWE-Search's value agent (arXiv 2410.20285);
    to accept, refine or abort is the choice of CodeTree's critic (arXiv 2411.04329). The other number says how
    interesting the state is to go on from, which `agent.search.go_explore` reads.
    """

    model: Model
    max_mends: int = 2
    """Unreadable answers in a row that are put up with; after one more the judge abstains."""

    def __post_init__(self) -> None:
        require_mends(self.max_mends)

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """As the tests say, lifted by the judge's opinion."""
        return judged(case, {"judge": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """What the judge says of a state.

        Raises:
            agent.models.conversing.Abstained: nothing that can be read.
        """
        asked = partial(case_messages, case, tests, render("judge_question"))
        return hear(case, self.model, asked, lambda text: read_verdict(text, "A reviewer"), self.max_mends)


def read_verdict(text: str, who: str) -> Opinion:
    """The opinion that an answer states as JSON.

    Raises:
        Unreadable: it states none.
    """
    said = last_object(text, "value")
    worth, verdict, words = _share(said, "value"), said.get("verdict", "refine"), said.get("assessment")
    if verdict not in VERDICTS:
        raise Unreadable(f"`verdict` is {str(verdict)[:40]!r}: give one of {', '.join(VERDICTS)}")
    if not isinstance(words, str) or not words.strip():
        raise Unreadable("`assessment` is missing: say in words what speaks for and against the change")
    interest = _share(said, "interest") if "interest" in said else None
    return Opinion(worth, f"{who} gives it {worth:.2f} of 1: {assessment(words)}", verdict, interest)


def _share(said: Mapping[str, Any], key: str) -> float:
    given = said[key]
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise Unreadable(f"`{key}` is {str(given)[:40]!r}: give a number from 0 to 1")
    return float(given)


def require_mends(mends: int) -> None:
    """Raises ValueError when a number of mends makes no sense."""
    if mends < 0:
        raise ValueError(f"max_mends={mends}: give a number of 0 or more")
