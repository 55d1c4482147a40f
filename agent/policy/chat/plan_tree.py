"""The plan tree: plans that begin with the same steps share them, and each step is carried out once for all of them.

Rules: the n-th attempt at a state carries out the n-th of its next steps, in the order of the plans. If all steps were
tried, or the state has a lower value than its parent, nothing is left to propose, so the search returns to the nearest
state with an open step. Only the base state has further children, which are free to choose. A step whose answers cannot
be read is asked for once more, and then skipped by name.

Merging plans by their common beginnings, and backtracking on that tree, is from Tree-Planner (arXiv 2310.08582). There
the model chooses a step at each state; here steps are taken in the order of the plans, the likeliest first.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agent.errors import PolicyError, TooLong
from agent.policy import Position
from agent.policy.chat.plans import AttemptPlan
from agent.policy.chat.transcript import unpack
from agent.prompts import render

log = logging.getLogger(__name__)

_T = TypeVar("_T")

PlanPath = tuple[int, ...]
"""A state's position in the plan tree: the index (from 0) of the step taken at each state since the base state."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A step, and the steps that may follow it."""

    step: str
    causes: tuple[str, ...]
    """The causes that its plans assume."""
    then: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanStep:
    """The next step in the plan tree; without a branch, the search has to backtrack."""

    path: PlanPath
    branch: Branch | None = None

    def text(self) -> str:
        """The text that tells an attempt its step."""
        if self.branch is None:
            return ""
        return render("chat_step", step=self.branch.step, causes=self.branch.causes, last=not self.branch.then)


def carried_out(step: PlanStep | None, seed: int, ask: Callable[[int], _T]) -> _T:
    """Return the result of `ask` for the seed. If it fails for a step of a plan, ask once more with the next seed,
    because the next attempt is made for another step.

    Raises:
        agent.errors.PolicyError: as `ask`; for a step, the message names it.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    if step is None or step.branch is None:
        return ask(seed)
    try:
        return ask(seed)
    except TooLong:
        raise
    except PolicyError as error:
        log.warning("asking once more for the plan step %r: %s", step.branch.step, error)
    try:
        return ask(seed + 1)
    except PolicyError as error:
        raise PolicyError(f"the plan step {step.branch.step!r} is skipped: {error}") from error


def merged(plans: Sequence[AttemptPlan]) -> tuple[Branch, ...]:
    """The first steps of the plans, each once, with the steps that follow; case and spaces are ignored."""
    groups = defaultdict[str, list[AttemptPlan]](list)
    for plan in plans:
        if plan["steps"]:
            groups[" ".join(plan["steps"][0].split()).casefold()].append(plan)
    return tuple(_branch(group) for group in groups.values())


def _branch(plans: Sequence[AttemptPlan]) -> Branch:
    rest: list[AttemptPlan] = [{"cause": plan["cause"], "steps": plan["steps"][1:]} for plan in plans]
    return Branch(plans[0]["steps"][0], tuple(dict.fromkeys(plan["cause"] for plan in plans)), merged(rest))


def plan_path_of(position: Position, policy_id: str) -> PlanPath | None:
    """The position's path in the policy's plan tree; None outside of it, or if a hint or a briefing comes first."""
    if position.hint or position.briefing:
        return None
    if len(position.path) == 1:
        return ()
    node = position.node
    stored = unpack(node.steps[0].message) if node.steps and node.policy_id == policy_id else None
    return tuple(stored["plan"]) if stored and "plan" in stored else None


def next_step(position: Position, path: PlanPath, branches: tuple[Branch, ...]) -> PlanStep | None:
    """The next step from a state; None: the policy is free to choose."""
    for number in path:
        branches = branches[number].then
    failed = len(position.path) > 1 and position.path[-1].value < position.path[-2].value
    if position.index < len(branches) and not failed:
        return PlanStep((*path, position.index), branches[position.index])
    return PlanStep(path) if path else None
