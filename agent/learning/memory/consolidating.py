"""Consolidating: a model decides which lessons say the same and which contradict one another; rules decide what is
kept.

Trace2Skill merges the lessons of single trajectories in this way, by inductive reasoning. Invariants: a lesson that the
model does not name is kept, and each skill has the runs of all lessons in it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agent.learning.memory.skills import Related, Skill, by_words, merged
from agent.models import Ask, Model
from agent.models.answers import Abstained, Unreadable, ask_until_readable, last_object, line
from agent.prompts import render
from agent.untrusted import fence, visible

log = logging.getLogger(__name__)

MOST = 60
"""How many lessons one question shows; if there are more, they are merged in parts first."""


@dataclass(frozen=True, slots=True)
class Consolidator:
    """Relates the lessons of many runs by asking a model, as `agent.learning.memory.skills.by_words` does by words."""

    model: Model
    ask: Ask

    def __call__(self, skills: Sequence[Skill]) -> Related:
        """The skills that result from the lessons, and those that contradict one another; judged by words if no answer
        can be read.

        Raises:
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        ordered = sorted(skills, key=lambda skill: (skill.text, skill.runs))
        if len(ordered) > MOST:
            parts = [self._related(ordered[at : at + MOST]) for at in range(0, len(ordered), MOST)]
            fewer = [skill for part in parts for skill in part.skills]
            if len(fewer) == len(ordered):
                return Related(fewer, [group for part in parts for group in part.opposed])
            return self(fewer)
        return self._related(ordered) if len(ordered) > 1 else Related(ordered, [])

    def _related(self, skills: Sequence[Skill]) -> Related:
        shown = visible("\n".join(f"{number}: {skill.text}" for number, skill in enumerate(skills, 1)))
        question = render("memory_consolidate", lessons=shown, fence=fence("lessons", shown))
        read = partial(_read, skills=skills)
        try:
            return ask_until_readable(self.ask, self.model, [{"role": "user", "content": question}], read)
        except Abstained as why:
            log.warning("%s; these lessons are merged by their words", why)
            return by_words(skills)


def _read(text: str, skills: Sequence[Skill]) -> Related:
    """The relations in an answer: a lesson that it does not name is a skill by itself."""
    answer = last_object(text, "skills")
    groups, pairs = answer["skills"], answer.get("contradictions", [])
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise Unreadable("`skills` has to be a list of objects")
    found = [_skill(group, skills) for group in groups]
    named = [number for group in groups for number in group["lessons"]]
    if twice := [number for number in named if named.count(number) > 1]:
        raise Unreadable(f"the lesson {twice[0]} is in two skills")
    by_lesson = {number: skill for group, skill in zip(groups, found, strict=True) for number in group["lessons"]}
    alone = [skill for number, skill in enumerate(skills, 1) if number not in by_lesson]
    by_lesson = dict(enumerate(skills, 1)) | by_lesson
    if not isinstance(pairs, list) or not all(isinstance(pair, list) for pair in pairs):
        raise Unreadable("`contradictions` has to be a list of lists of lessons")
    opposed = [list(dict.fromkeys(by_lesson[number] for number in _numbers(pair, len(skills)))) for pair in pairs]
    return Related([*found, *alone], [group for group in opposed if len(group) > 1])


def _skill(group: dict[str, object], skills: Sequence[Skill]) -> Skill:
    text, numbers = group.get("text"), _numbers(group.get("lessons"), len(skills))
    if not isinstance(text, str) or not line(text) or not numbers:
        raise Unreadable("each of `skills` has to have a `text` and at least one of the `lessons`")
    return merged([skills[number - 1] for number in numbers], line(text))


def _numbers(value: object, most: int) -> list[int]:
    if not isinstance(value, list) or not all(type(number) is int and 1 <= number <= most for number in value):
        raise Unreadable(f"lessons are named by whole numbers from 1 to {most}")
    return value
