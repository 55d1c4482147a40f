"""A policy that is a function of the position, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from agent.actions import Edit
from agent.budget import Usage
from agent.models import Completion
from agent.policy import Position, Proposal
from tests.projects import BUG
from tests.scripted import ScriptedModel


@dataclass
class Scripted:
    """Proposes what `answer` says."""

    answer: Callable[[Position], Proposal]
    policy_id: str = "scripted/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        return self.answer(position)


def edits(*replacements: str) -> Scripted:
    """The n-th child of the root replaces the bug by the n-th text; other nodes have nothing to propose."""

    def answer(position: Position) -> Proposal:
        if len(position.path) > 1 or position.index >= len(replacements):
            return Proposal(())
        return Proposal((Edit("means.py", BUG, replacements[position.index]),), label=f"edit {position.index}")

    return Scripted(answer)


def pay(position: Position, **usage: float) -> None:
    """Ask a model something; that this costs so much is all that it says. The call is estimated at 19 tokens."""
    said = Completion("", usage=Usage(model_calls=1, **usage))
    position.ask(ScriptedModel([said]), [{"role": "user", "content": "What is it?"}], max_tokens=4)
