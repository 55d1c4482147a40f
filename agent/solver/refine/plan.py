"""Plan abstraction: a model draws a plan for the next wave from what is known of the rollouts before it.

The three stages (explore, abstract a plan, carry it out with the plan) and the parts of a plan are SAGE's (arXiv
2511.05931). The model that draws the plan may be another one than the one that follows it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agent.errors import PolicyError
from agent.evaluate.value.exhibit import shown_issue
from agent.models import Ask, Message, Model, directly
from agent.models.conversing import Abstained, inquire, last_of, line, lines
from agent.policy.chat.priors import BRIEFING_BYTES, accounts
from agent.prompts import render
from agent.run.rollouts import Plan, Summary
from agent.task import Task
from agent.untrusted import fence

__all__ = ["Planner", "read_plan"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planner:
    """Draws plans. Thread-safe."""

    model: Model
    max_mends: int = 2
    """Unreadable answers in a row that are put up with; after one more there is no plan."""

    def draw(self, task: Task, summaries: Sequence[Summary], ask: Ask = directly) -> Plan | None:
        """A plan for the task, drawn from what its rollouts came to; None: none that could be read, or the model has
        no room for the question.

        Raises:
            agent.budget.BudgetSpent: the question does not fit in what the run may spend.
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        try:
            return inquire(ask, self.model, partial(_question, task, summaries), read_plan, self.max_mends)
        except (Abstained, PolicyError) as why:
            log.warning("the next wave has no plan: %s", why)
            return None


def read_plan(text: str) -> Plan:
    """The plan in an answer: its last JSON object with the key `steps`, whose parts have the types of `Plan` and which
    has nothing else. A part may be left out; empty lines are.

    Raises:
        agent.models.conversing.Unreadable: there is none, or it is no plan.
    """
    plan = last_of(Plan, text, "steps")
    return Plan(lines(plan.steps), lines(plan.dependencies), lines(plan.constraints), line(plan.feedback))


def _question(task: Task, summaries: Sequence[Summary], length: float) -> list[Message]:
    """`length` is the share of the issue and of the accounts that is shown, in (0, 1]."""
    told = accounts(summaries, int(BRIEFING_BYTES * length))
    question = render("refine_plan", summaries=told, fence=fence("attempts", "\n".join(told)))
    return [
        {"role": "system", "content": render("refine_system")},
        {"role": "user", "content": f"{shown_issue(task, length)}\n\n{question}"},
    ]
