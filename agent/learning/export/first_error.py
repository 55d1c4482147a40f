"""The first wrong turn of a failed path, marked by a model that has seen the right path, and the model's reflection.

Agent-R (arXiv 2501.11425) has the actor judge the turns of a failed trajectory one by one. Here one question shows all
of them. The answer is kept in the run, for `agent.learning.export.revision`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agent.actions.excerpt import excerpt
from agent.learning.export.turns import Turn
from agent.models import Ask, Message, Model
from agent.models.answers import Unreadable, ask_within_context, last_object, line, words_in
from agent.prompts import render
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.solver.summaries.account import turn_text
from agent.untrusted import fence, visible

NOTE = "first error"
"""The key of the note at the last state of a failed path."""
TURNS_BYTES = 40_000
"""The maximum size of all turns of a path together, divided equally among them."""
LEAST_BYTES = 300


@dataclass(frozen=True, slots=True)
class FirstError:
    """The first wrong turn of the path from `fork`."""

    fork: NodeId
    """The state at which the failed path and the right one diverge."""
    turn: int
    """Its position among the turns after the fork, from 0."""
    reflection: str

    @classmethod
    def of(cls, run: Run, fork: NodeId, leaf: NodeId) -> FirstError | None:
        """The note about the path from a fork to a leaf; None if no model was asked."""
        noted = run.note(leaf, NOTE)
        return cls(**noted) if noted and noted["fork"] == fork else None


def ask_for(
    ask: Ask, model: Model, issue: str, fork: NodeId, wrong: Sequence[Turn], right: Sequence[Turn]
) -> FirstError:
    """Ask a model for the first wrong turn. `wrong` and `right` are the turns of both paths from the fork.

    Raises:
        agent.models.answers.Abstained: no answer could be read.
        agent.errors.RamifyError, agent.budget.BudgetSpent: as `ask`.
    """
    read = partial(_read, fork=fork, turns=len(wrong))
    return ask_within_context(ask, model, partial(_question, issue, wrong, right), read)


def _question(issue: str, wrong: Sequence[Turn], right: Sequence[Turn], length: float) -> list[Message]:
    ways = [_rendered(turns, int(TURNS_BYTES * length)) for turns in (wrong, right)]
    shown = {"issue": visible(issue), "wrong": ways[0], "right": ways[1]}
    return [{"role": "user", "content": render("export_first_error", **shown, fence=fence("ways", str(shown)))}]


def _rendered(turns: Sequence[Turn], limit: int) -> str:
    share = max(LEAST_BYTES, limit // len(turns))
    shown = (f"Turn {n}:\n{turn_text(turn.step)}" for n, turn in enumerate(turns, 1))
    return "\n\n".join(visible(excerpt(turn, share)[0]) for turn in shown)


def _read(text: str, *, fork: NodeId, turns: int) -> FirstError:
    found = last_object(text, "turn")
    number, reflection = found["turn"], words_in(found, "reflection", "`reflection` has to be a text")
    if type(number) is not int or not 1 <= number <= turns:
        raise Unreadable(f"`turn` has to be a whole number from 1 to {turns}")
    return FirstError(fork, number - 1, line(reflection))
