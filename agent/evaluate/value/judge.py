"""A model as judge of a state's patch, tests and task: two numbers, a verdict and an assessment in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.archive import archived
from agent.evaluate.value.exhibit import assessment, case_messages
from agent.evaluate.value.weighing import VERDICTS, Opinion, hear, judged
from agent.models import Model
from agent.models.answers import Unreadable, last_object, number_in, words_in
from agent.prompts import render
from agent.run.message_store import digest_of
from agent.run.tree.evaluation import Evaluation

_SAID = {"accept": "and accepts it", "refine": "and would improve it", "abort": "and would begin again elsewhere"}
"""Each verdict, in the words that the next attempt reads."""


@dataclass(frozen=True, slots=True)
class Judge:
    """One request per state, and none if the same question was asked for an earlier state, as when a line of work
    submits a state that was judged when its tests ran. The value is the test-based value, raised by the judge's
    score (`agent.evaluate.value.weighing`).

    The score, with an assessment that later attempts see, follows SWE-Search's value agent (arXiv 2410.20285). The
    decision to accept, refine or abort follows CodeTree's critic (arXiv 2411.04329). A second score rates how
    interesting it is to continue from the state; `agent.search.go_explore` uses it. With `choose`, the model chooses
    the state to return to, as in Intelligent Go-Explore (arXiv 2405.15143).
    """

    model: Model
    max_retries: int = 2
    """Retries after unreadable answers; after that the judge abstains."""
    choose: bool = False
    """Whether the judge is also shown the states found so far, and chooses the one to return to, for
    `agent.search.go_explore`."""
    _given: dict[str, Opinion] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The opinions so far, by a digest of the question."""

    def __post_init__(self) -> None:
        require_retries(self.max_retries)

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the judge's opinion."""
        return judged(case, {"judge": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """The judge's opinion of a state.

        Raises:
            agent.models.answers.Abstained: no answer could be read.
        """
        archive = archived(case) if self.choose and case.tree is not None else None
        question = partial(case_messages, case, tests, render("judge_question", archive=archive and archive.shown))

        def read(text: str) -> Opinion:
            opinion = read_verdict(text, "A reviewer")
            return opinion if archive is None else replace(opinion, return_to=archive.read_choice(text))

        key = digest_of([dict(message) for message in question(1.0)])
        if key not in self._given:
            self._given[key] = hear(case, self.model, question, read, self.max_retries)
        return self._given[key]


def read_verdict(text: str, who: str) -> Opinion:
    """Read the opinion from the JSON in an answer.

    Raises:
        Unreadable: there is no such JSON.
    """
    answer = last_object(text, "value")
    worth, verdict = number_in(answer, "value", 1), answer.get("verdict", "refine")
    if verdict not in VERDICTS:
        raise Unreadable(f"`verdict` is {str(verdict)[:40]!r}: give one of {', '.join(VERDICTS)}")
    words = words_in(
        answer, "assessment", "`assessment` is missing: say in words what speaks for and against the change"
    )
    interest = number_in(answer, "interest", 1) if "interest" in answer else None
    return Opinion(worth, f"{who} gives it {worth:.2f} of 1 {_SAID[verdict]}: {assessment(words)}", verdict, interest)


def require_retries(retries: int) -> None:
    """Raise ValueError for a negative number of retries."""
    if retries < 0:
        raise ValueError(f"max_retries={retries}: give a number of 0 or more")
