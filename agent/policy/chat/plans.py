"""Plans: several approaches to a repair, drawn with one call and shared by all attempts at the base state.

Invariants: plans are drawn once for a run and model, and recorded at the root. The n-th child of the root gets the n-th
plan, at the end of its first request, so that all conversations share a prefix. A search that returns to the root
continues with the next plan. Common beginnings may be done once for all plans (`agent.policy.chat.plan_tree`). Drawing
plans with one call is from Tree-Planner (arXiv 2310.08582).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from agent.models import Message
from agent.models.answers import Unreadable, line
from agent.policy import Position
from agent.prompts import render

MOST_PLANS = 20
STEPS = 12
"""The most steps of a plan; later ones are left out."""

_HEADING = re.compile(r"^[#* \t]*plan[ \t]+(\d+)[ \t]*:[* \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_STEP = re.compile(r"^[ \t]*\d+[.)][ \t]+(\S.*)$", re.MULTILINE)


class AttemptPlan(TypedDict):
    """One approach to the repair, in words."""

    cause: str
    steps: list[str]


def wanted_plans(count: int, *, merged: bool = False) -> list[Message]:
    """The question for plans. `merged`: their common beginnings are carried out only once."""
    return [{"role": "user", "content": render("chat_plans", wanted=count, merged=merged)}]


def plan_of(position: Position, plans: Sequence[AttemptPlan]) -> tuple[AttemptPlan | None, bool]:
    """The plan of a child of the root (None without plans), and whether it is the first child with that plan."""
    return (plans[position.index % len(plans)], position.index < len(plans)) if plans else (None, False)


def telling(plan: AttemptPlan, *, first: bool) -> str:
    """The text that tells an attempt its plan."""
    return render("chat_plan", cause=plan["cause"], steps=plan["steps"], first=first)


def read_plans(text: str, most: int) -> list[AttemptPlan]:
    """The plans in an answer, in order, without repetitions. If a number occurs twice, the later plan counts. Other
    text is ignored, and so is a plan without a cause or a step.

    Raises:
        agent.models.answers.Unreadable: the answer holds no plan.
    """
    _, *parts = _HEADING.split(text)
    numbered = {number: _plan(*rest) for number, *rest in zip(parts[::3], parts[1::3], parts[2::3], strict=True)}
    plans = {repr(plan).casefold(): plan for plan in numbered.values() if plan["cause"] and plan["steps"]}
    if not plans:
        raise Unreadable("there is no line `Plan 1: CAUSE` with numbered steps below it")
    return list(plans.values())[:most]


def _plan(cause: str, body: str) -> AttemptPlan:
    cause, *steps = (line(text.replace("**", "")) for text in (cause, *_STEP.findall(body)[:STEPS]))
    return {"cause": cause, "steps": steps}
