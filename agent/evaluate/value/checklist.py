"""A checklist: questions made once from the issue, and how many of them a model answers with yes for a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import assessment, case_messages, issue_messages
from agent.evaluate.value.hearing import hear
from agent.evaluate.value.judge import require_mends
from agent.evaluate.value.weighing import Opinion, judged
from agent.models import Model
from agent.models.conversing import Abstained, Unreadable, last_object
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation

__all__ = ["CHECKLIST", "Checklist"]

CHECKLIST = "checklist"
"""Key of the note on the root that holds the questions, or why there are none."""
ITEM_CHARS = 300
REASON_CHARS = 200
ANSWERS = ("yes", "no", "unclear")


@dataclass(frozen=True, slots=True)
class Checklist:
    """One question a state, and one for the whole run, whose answer is the same for all candidates.

    The opinion is the share of items that are answered with yes; what is not answered is unclear. Lists that a model
    makes for one instruction and answers item by item are TICK's (arXiv 2410.03608).
    """

    model: Model
    items: int = 6
    """Questions that are asked for, from 1 to 20."""
    max_mends: int = 2
    """Unreadable answers in a row that are put up with; after one more there is no opinion of that state, or, where
    the list itself cannot be read, of any."""

    def __post_init__(self) -> None:
        require_mends(self.max_mends)
        if not 1 <= self.items <= 20:
            raise ValueError(f"items={self.items}: give a number from 1 to 20")

    def evaluate(self, case: EvaluationInput) -> Evaluation:
        """As the tests say, lifted by the share of items that hold."""
        return judged(case, {"checklist": self.opinion})

    def opinion(self, case: EvaluationInput, tests: Evaluation) -> Opinion:
        """How much of the list a state fulfils.

        Raises:
            agent.models.conversing.Abstained: there is no list, or no answer that can be read.
        """
        note = case.once(CHECKLIST, lambda: self._make(case))
        items = note["items"]
        if not items:
            raise Abstained(f"there is no checklist: {note['problem']}")
        asked = partial(case_messages, case, tests, render("checklist_score", items=items))
        answers = hear(case, self.model, asked, lambda text: _read_answers(text, len(items)), self.max_mends)
        return Opinion(sum(answer == "yes" for answer, _ in answers) / len(items), _account(items, answers))

    def _make(self, case: EvaluationInput) -> dict[str, Any]:
        """The questions. That there are none is found out once, too."""
        asked = partial(issue_messages, case, render("checklist_make", wanted=self.items))
        try:
            return {"items": hear(case, self.model, asked, lambda t: _read_items(t, self.items), self.max_mends)}
        except Abstained as why:
            return {"items": [], "problem": str(why)}


def _read_items(text: str, most: int) -> list[str]:
    given = last_object(text, "items")["items"]
    if not isinstance(given, list) or not all(isinstance(item, str) and item.strip() for item in given) or not given:
        raise Unreadable("`items` has to be a list of questions, each a string")
    return [assessment(" ".join(item.split())[:ITEM_CHARS]) for item in given[:most]]


def _read_answers(text: str, items: int) -> list[tuple[str, str]]:
    """The answer to each item and the reason for it."""
    given = last_object(text, "answers")["answers"]
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise Unreadable("`answers` has to be a list of objects with `item`, `answer` and `reason`")
    found = [("unclear", "")] * items
    for each in given:
        number, answer = each.get("item"), each.get("answer")
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= items:
            raise Unreadable(f"`item` is {str(number)[:40]!r}: give a number from 1 to {items}")
        if answer not in ANSWERS:
            raise Unreadable(f"the `answer` to item {number} is {str(answer)[:40]!r}: give one of {', '.join(ANSWERS)}")
        found[number - 1] = answer, assessment(" ".join(str(each.get("reason", "")).split())[:REASON_CHARS])
    return found


def _account(items: Sequence[str], answers: Sequence[tuple[str, str]]) -> str:
    held = sum(answer == "yes" for answer, _ in answers)
    lines = [
        f"- {answer}: {item}{f' ({reason})' if reason else ''}"
        for item, (answer, reason) in zip(items, answers, strict=True)
    ]
    return "\n".join([f"Of a checklist made from the issue, {held} of {len(items)} hold:", *lines])
