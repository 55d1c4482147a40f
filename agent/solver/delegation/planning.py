"""Planning: divides an issue into parts, by a model or by the coverage of its goal tests."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from agent.measure.probing.spectrum import Spectrum
from agent.models import Ask, Message, Model
from agent.models.answers import Abstained, Unreadable, ask_until_readable, last_of, system_and_user
from agent.parsing import adapter
from agent.prompts import render
from agent.solver.delegation.plan import SubTask, by_code, check, completed
from agent.task import Task
from agent.untrusted import fence, issue_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Reply:
    parts: tuple[SubTask, ...]


def to_note(task: Task, spectrum: Spectrum, model: Model | None, ask: Ask) -> dict[str, Any]:
    """Make a plan for a task, in the form of the journal: by the model, or by the code that the goal tests execute if
    there is no model or its plan cannot be read.

    Raises:
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    parts, author = by_code(task.goal_tests, spectrum), "facts"
    if model is not None:
        try:
            parts = ask_until_readable(ask, model, _question(task), partial(_read, task.goal_tests))
            author = model.name
        except Abstained as why:
            log.warning(
                "the issue is divided by the code that its tests execute, since the model gave no plan: %s", why
            )
    return {"author": author, "parts": [asdict(part) for part in parts]}


def from_note(note: dict[str, Any]) -> tuple[SubTask, ...]:
    """The parts that `to_note` wrote."""
    parts: tuple[SubTask, ...] = adapter(tuple[SubTask, ...]).validate_python(note["parts"])
    return parts


def _question(task: Task) -> list[Message]:
    issue = issue_text(task.statement)
    question = render("delegate_plan", issue=issue, fence=fence("issue", issue), goal_tests=task.goal_tests)
    return system_and_user(render("delegate_system"), question)


def _read(goals: tuple[str, ...], text: str) -> tuple[SubTask, ...]:
    parts = last_of(_Reply, text, "parts").parts
    try:
        check(parts, goals)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    return completed(parts, goals)
