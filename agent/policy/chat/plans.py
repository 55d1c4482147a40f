"""Plans: several ways to go about a repair, drawn by one question and shared by all that begin at the base state.

Laws: they are drawn once a run and model, and noted at the root; the n-th child of the root is told the n-th, last of
all, so that all conversations begin with the same bytes. A search that comes back to the root goes on to the next plan.
What plans have in common may be done once for all of them (`agent.policy.chat.plan_tree`). One call that samples plans
is Tree-Planner's (arXiv 2310.08582).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import TypedDict

from agent.errors import PolicyError
from agent.models import Message, Model
from agent.models.conversing import Abstained, Unreadable
from agent.policy import Position
from agent.prompts import render
from agent.untrusted import visible

__all__ = ["MOST_PLANS", "Plan", "drawn", "key_of", "plan_of", "read_plans", "telling", "wanted_plans"]

log = logging.getLogger(__name__)

MOST_PLANS = 20
STEPS = 12
"""Of a plan; those after them are left out."""
LINE_CHARS = 400
"""Of a cause or a step."""

_HEADING = re.compile(r"^[#* \t]*plan[ \t]+(\d+)[ \t]*:[* \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_STEP = re.compile(r"^[ \t]*\d+[.)][ \t]+(\S.*)$", re.MULTILINE)


class Plan(TypedDict):
    """One way to go about the repair, in words."""

    cause: str
    steps: list[str]


def key_of(model: Model) -> str:
    """Of the note on the root that holds the model's plans, or why there are none."""
    return f"plans/{model.name}"


def wanted_plans(count: int, *, merged: bool = False) -> list[Message]:
    """What is asked of the model where plans are drawn. `merged`: what they have in common will be done once."""
    return [{"role": "user", "content": render("chat_plans", wanted=count, merged=merged)}]


def drawn(position: Position, model: Model, draw: Callable[[], list[Plan]]) -> list[Plan]:
    """The plans of a run, none where there are none. Only the first to ask has them drawn. That no answer could be read
    is found out once, too."""

    def find() -> dict[str, object]:
        try:
            return {"plans": draw()}
        except (Abstained, PolicyError) as why:
            log.warning("the search continues without plans: %s", why)
            return {"plans": [], "problem": str(why)}

    plans: list[Plan] = position.once(key_of(model), find)["plans"]
    return plans


def plan_of(position: Position, plans: Sequence[Plan]) -> tuple[Plan | None, bool]:
    """The plan of a child of the root, None where there are none, and whether no child before it had that one."""
    return (plans[position.index % len(plans)], position.index < len(plans)) if plans else (None, False)


def telling(plan: Plan, *, first: bool) -> str:
    """What an attempt is told of its plan."""
    return render("chat_plan", cause=plan["cause"], steps=plan["steps"], first=first)


def read_plans(text: str, most: int) -> list[Plan]:
    """The plans in an answer, each once, in their order. One that is written again under its number counts as it was
    written last; words around them are passed over, and so is a plan without a cause or a step.

    Raises:
        agent.models.conversing.Unreadable: there is none.
    """
    _, *parts = _HEADING.split(text)
    found = {number: _plan(*rest) for number, *rest in zip(parts[::3], parts[1::3], parts[2::3], strict=True)}
    plans = {repr(plan).casefold(): plan for plan in found.values() if plan["cause"] and plan["steps"]}
    if not plans:
        raise Unreadable("there is no line `Plan 1: CAUSE` with numbered steps below it")
    return list(plans.values())[:most]


def _plan(cause: str, body: str) -> Plan:
    return {"cause": _line(cause), "steps": [_line(step) for step in _STEP.findall(body)[:STEPS]]}


def _line(text: str) -> str:
    return visible(" ".join(text.replace("**", "").split())[:LINE_CHARS])
