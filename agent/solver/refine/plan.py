"""Plan abstraction: a model draws a plan for the next round from the summaries of earlier rollouts.

From SAGE (arXiv 2511.05931): the three stages (explore, abstract a plan, follow the plan) and the parts of a plan. The
model that draws the plan may differ from the one that follows it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from agent.errors import PolicyError
from agent.evaluate.value.exhibit import shown_issue
from agent.models import Ask, Message, Model, directly
from agent.models.answers import Abstained, ask_within_context, last_of, line, lines, system_and_user
from agent.policy.chat.earlier_rounds import BRIEFING_BYTES, accounts
from agent.prompts import render
from agent.run.rollouts import RoundPlan, Summary
from agent.task import Task
from agent.untrusted import fence

log = logging.getLogger(__name__)


def draw_plan(model: Model, task: Task, summaries: Sequence[Summary], ask: Ask = directly) -> RoundPlan | None:
    """Have the model draw a plan for the task from the summaries of its rollouts. Returns None if no plan can be read
    or the question is too long for the model.

    Raises:
        agent.budget.BudgetSpent: the question does not fit in what the run may spend.
        agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
    """
    try:
        return ask_within_context(ask, model, partial(_question, task, summaries), read_plan)
    except (Abstained, PolicyError) as why:
        log.warning("the next round has no plan: %s", why)
        return None


def read_plan(text: str) -> RoundPlan:
    """Read the plan from an answer: its last JSON object with the key `steps`. Empty lines are left out.

    Raises:
        agent.models.answers.Unreadable: there is no such object, or it is not a plan.
    """
    plan = last_of(RoundPlan, text, "steps")
    return RoundPlan(lines(plan.steps), lines(plan.dependencies), lines(plan.constraints), line(plan.feedback))


def _question(task: Task, summaries: Sequence[Summary], length: float) -> list[Message]:
    """Return the question. `length` is the fraction of the issue and of the summaries that is shown, in (0, 1]."""
    texts = accounts(summaries, int(BRIEFING_BYTES * length))
    question = render("refine_plan", summaries=texts, fence=fence("attempts", "\n".join(texts)))
    return system_and_user(render("refine_system"), f"{shown_issue(task, length)}\n\n{question}")
