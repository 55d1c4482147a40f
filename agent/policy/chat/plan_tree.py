"""The tree of plans: plans that begin with the same steps are one way as far as they do, and each step is carried out
once for all of them.

Laws: the n-th attempt at a state carries out the n-th of the steps that come after it, in the order of the plans; where
all were tried, or the state is worth less than the one before it, nothing is left to propose, so that the search goes
back to the nearest state at which a step is left. Of the base state alone there are further children, who are free. A
step whose answers cannot be read is asked for once more, and then left out by name.

Plans merged by what they have in common, and backtracking on that tree, are Tree-Planner's (arXiv 2310.08582). It asks
the model at each state which step to take; here they are taken as they were written, the likeliest first.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agent.errors import PolicyError, TooLong
from agent.policy import Position
from agent.policy.chat.plans import Plan
from agent.policy.chat.transcript import unpack
from agent.prompts import render

__all__ = ["Branch", "Place", "Way", "carried_out", "merged", "place_of", "way"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")

Place = tuple[int, ...]
"""Of a state: which of the steps was taken at each state from the base state on, from 0."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A step, and those that come after it."""

    step: str
    causes: tuple[str, ...]
    """Of the plans that have it."""
    then: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """What is next on the tree: a step, or nothing, where it is to be gone back."""

    place: Place
    branch: Branch | None = None

    def told(self) -> str:
        """What an attempt is told of its step."""
        if self.branch is None:
            return ""
        return render("chat_step", step=self.branch.step, causes=self.branch.causes, last=not self.branch.then)


def carried_out(step: Way | None, seed: int, ask: Callable[[int], _T]) -> _T:
    """What `ask` makes of the seed. Where that is to carry out a step, and nothing can be made of the answers, it is
    asked once more, with the next seed: the attempt after it is for another step.

    Raises:
        agent.errors.PolicyError: as `ask`; of a step it names the step.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    if step is None or step.branch is None:
        return ask(seed)
    try:
        return ask(seed)
    except TooLong:
        raise
    except PolicyError as why:
        log.warning("the step of the plans %r is asked for once more: %s", step.branch.step, why)
    try:
        return ask(seed + 1)
    except PolicyError as why:
        raise PolicyError(f"the step of the plans {step.branch.step!r} is left out: {why}") from why


def merged(plans: Sequence[Plan]) -> tuple[Branch, ...]:
    """The first steps of the plans, each once, with what comes after them. Case and spaces tell no steps apart."""
    alike = defaultdict[str, list[Plan]](list)
    for plan in plans:
        if plan["steps"]:
            alike[" ".join(plan["steps"][0].split()).casefold()].append(plan)
    return tuple(_branch(those) for those in alike.values())


def _branch(plans: Sequence[Plan]) -> Branch:
    rest: list[Plan] = [{"cause": plan["cause"], "steps": plan["steps"][1:]} for plan in plans]
    return Branch(plans[0]["steps"][0], tuple(dict.fromkeys(plan["cause"] for plan in plans)), merged(rest))


def place_of(position: Position, policy_id: str) -> Place | None:
    """Where on the tree of a policy's plans its position is; None: beside it, as where a person says what to do or an
    earlier wave has taught something."""
    if position.hint or position.briefing:
        return None
    if len(position.path) == 1:
        return ()
    node = position.node
    stored = unpack(node.steps[0].message) if node.steps and node.policy_id == policy_id else None
    return tuple(stored["plan"]) if stored and "plan" in stored else None


def way(position: Position, place: Place, branches: tuple[Branch, ...]) -> Way | None:
    """What is next from a place; None: whatever the policy likes."""
    for number in place:
        branches = branches[number].then
    failed = len(position.path) > 1 and position.path[-1].value < position.path[-2].value
    if position.index < len(branches) and not failed:
        return Way((*place, position.index), branches[position.index])
    return Way(place) if place else None
