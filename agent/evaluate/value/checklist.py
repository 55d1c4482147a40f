"""A checklist: questions derived once from the issue, and the fraction that a model answers with yes for a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import assessment, case_messages, issue_messages
from agent.evaluate.value.judge import require_retries
from agent.evaluate.value.weighing import Opinion, hear, judged
from agent.models import Model
from agent.models.answers import Abstained, Unreadable, last_object
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation

CHECKLIST = "checklist"
"""Key of the root's note with the questions, or with the reason why there are none."""
ITEM_CHARS = 300
REASON_CHARS = 200
ANSWERS = ("yes", "no", "unclear")


@dataclass(frozen=True, slots=True)
class Checklist:
    """One request per state, and one per run that makes the list for all candidates.

    The opinion is the fraction of items answered with yes; items without an answer are unclear. TICK (arXiv 2410.03608)
    introduced lists that a model makes for one instruction and answers item by item.
    """

    model: Model
    items: int = 6
    """Questions of the list, from 1 to 20."""
    max_retries: int = 2
    """Retries after unreadable answers; after that there is no opinion of the state, or of any state if the list itself
    was unreadable."""

    def __post_init__(self) -> None:
        require_retries(self.max_retries)
        if not 1 <= self.items <= 20:
            raise ValueError(f"items={self.items}: give a number from 1 to 20")

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """The value by tests, lifted by the fraction of items that hold."""
        return judged(case, {"checklist": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """The fraction of the list that a state fulfils.

        Raises:
            agent.models.answers.Abstained: there is no list, or no readable answer.
        """
        note = case.memo(CHECKLIST, lambda: self._make(case))
        items = note["items"]
        if not items:
            raise Abstained(f"there is no checklist: {note['problem']}")
        question = partial(case_messages, case, tests, render("checklist_score", items=items))
        answers = hear(case, self.model, question, lambda text: _read_answers(text, len(items)), self.max_retries)
        return Opinion(sum(answer == "yes" for answer, _ in answers) / len(items), _account(items, answers))

    def _make(self, case: EvaluationInput) -> dict[str, Any]:
        """The note with the questions. A failure is noted too, so that the model is asked only once."""
        question = partial(issue_messages, case, render("checklist_make", wanted=self.items))
        try:
            return {"items": hear(case, self.model, question, lambda t: _read_items(t, self.items), self.max_retries)}
        except Abstained as why:
            return {"items": [], "problem": str(why)}


def _read_items(text: str, most: int) -> list[str]:
    items = last_object(text, "items")["items"]
    if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items) or not items:
        raise Unreadable("`items` has to be a list of questions, each a string")
    return [assessment(" ".join(item.split())[:ITEM_CHARS]) for item in items[:most]]


def _read_answers(text: str, items: int) -> list[tuple[str, str]]:
    entries = last_object(text, "answers")["answers"]
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise Unreadable("`answers` has to be a list of objects with `item`, `answer` and `reason`")
    answers = [("unclear", "")] * items
    for entry in entries:
        number, answer = entry.get("item"), entry.get("answer")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= items:
            raise Unreadable(f"`item` is {str(number)[:40]!r}: give a number from 1 to {items}")
        if answer not in ANSWERS:
            raise Unreadable(f"the `answer` to item {number} is {str(answer)[:40]!r}: give one of {', '.join(ANSWERS)}")
        answers[number - 1] = answer, assessment(" ".join(str(entry.get("reason", "")).split())[:REASON_CHARS])
    return answers


def _account(items: Sequence[str], answers: Sequence[tuple[str, str]]) -> str:
    held = sum(answer == "yes" for answer, _ in answers)
    lines = [
        f"- {answer}: {item}{f' ({reason})' if reason else ''}"
        for item, (answer, reason) in zip(items, answers, strict=True)
    ]
    return "\n".join([f"Of a checklist made from the issue, {held} of {len(items)} hold:", *lines])
