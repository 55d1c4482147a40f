"""A model's account of a rollout, and the question that asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.actions import as_call
from agent.actions.excerpt import excerpt, printable
from agent.evaluate.value.exhibit import NOTES_BYTES, PATCH_BYTES, counts, fenced, shown_issue
from agent.models import Message
from agent.models.answers import last_of, line, lines, system_and_user
from agent.policy.chat.transcript import said
from agent.prompts import render
from agent.run.rollouts import RolloutOutcome
from agent.run.tree.node import Node, Step
from agent.task import Task
from agent.untrusted import terminal_text

TURNS_BYTES = 60_000
"""The maximum size of all turns together in bytes, which they share equally."""
TURN_BYTES = 4_000
LEAST_BYTES = 300


@dataclass(frozen=True, slots=True)
class Account:
    """A model's summary of a rollout. The fields are those of `agent.run.rollouts.Summary`."""

    hypothesis: str
    outcome: RolloutOutcome
    progress: str
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    tests_passed: tuple[str, ...] = ()
    tests_failed: tuple[str, ...] = ()
    failure_modes: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All sentences of the account."""
        return (self.hypothesis, self.progress, *self.failure_modes, *self.risks, *self.insights)


def read_account(text: str) -> Account:
    """Read the account from an answer, in printable lines.

    Raises:
        agent.models.answers.Unreadable: the answer contains no account.
    """
    account = last_of(Account, text, "hypothesis")
    return replace(
        account,
        hypothesis=line(account.hypothesis),
        progress=line(account.progress),
        failure_modes=lines(account.failure_modes),
        risks=lines(account.risks),
        insights=lines(account.insights),
    )


def question(task: Task, path: Sequence[Node], best: Node, patch: bytes, length: float) -> list[Message]:
    """Return the question to the model. `length` is the fraction of each limit that is used, in (0, 1]."""
    notes = best.evaluation.notes
    request = render(
        "summary_question",
        turns=fenced("attempt", _turns(path, int(TURNS_BYTES * length)), int(TURNS_BYTES * length)),
        patch=fenced("change", printable(patch), int(PATCH_BYTES * length)),
        before=counts(path[0].report),
        after=counts(best.report),
        details=fenced("tests", terminal_text(notes), int(NOTES_BYTES * length)) if notes else "",
    )
    return system_and_user(render("summary_system"), f"{shown_issue(task, length)}\n\n{request}")


def _turns(path: Sequence[Node], limit: int) -> str:
    """The messages, actions and observations on the path, each turn cut to its share of the limit."""
    turns = [f"On the way to state {node.id}:\n{turn_text(step)}" for node in path for step in node.steps]
    share = max(LEAST_BYTES, min(TURN_BYTES, limit // max(1, len(turns))))
    return "\n\n".join(excerpt(turn, share)[0] for turn in turns) or "(no turn)"


def turn_text(step: Step) -> str:
    """The messages, actions and observations of a turn."""
    lines = [words] if (words := said(step)) else []
    for number, action in enumerate(step.actions):
        lines.append("{} {}".format(*as_call(action)))
        lines += [seen.text for seen in step.observations[number : number + 1]]
    return "\n".join(lines)
