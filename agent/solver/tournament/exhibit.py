"""What a judge is shown of a group: the issue, and of each candidate what its rollout came to and its patch, under a
letter that says nothing but its place. No trace of a rollout is shown: summaries serve judges better (arXiv
2604.16529).

Law: as `agent.evaluate.value.exhibit`. The candidates of a group share the room that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from agent.actions.excerpt import printable
from agent.evaluate.value.exhibit import fenced, shown_issue
from agent.models import Message
from agent.models.conversing import Unreadable, last_object, line
from agent.policy.chat.priors import accounts
from agent.prompts import render
from agent.run.ballots import Ballot
from agent.run.rollouts import Candidate
from agent.task import Task

__all__ = ["group_messages", "letters", "read_ballot"]

PATCHES_BYTES = 60_000
ACCOUNTS_BYTES = 16_000
"""Of all candidates of a group together."""


def letters(group: Sequence[object]) -> str:
    """What the members of a group are called before a judge, in their order.

    Raises:
        ValueError: there are more than letters.
    """
    if len(group) > len(ascii_uppercase):
        raise ValueError(f"a group of {len(group)}: a judge compares {len(ascii_uppercase)} at most")
    return ascii_uppercase[: len(group)]


def group_messages(task: Task, group: Sequence[Candidate], question: str, length: float = 1.0) -> list[Message]:
    """A question about a group. `length` is the share of each limit that is made use of, in (0, 1]."""
    told = accounts([each.summary for each in group], int(ACCOUNTS_BYTES * length), letters(group))
    room = int(PATCHES_BYTES * length) // len(group)
    attempts = [
        render(
            "tournament_attempt",
            letter=letter,
            account=fenced(f"account-{letter}", account, ACCOUNTS_BYTES),
            patch=fenced(f"change-{letter}", printable(candidate.patch), room),
        )
        for letter, account, candidate in zip(letters(group), told, group, strict=True)
    ]
    return [
        {"role": "system", "content": render("tournament_system")},
        {"role": "user", "content": "\n\n".join((shown_issue(task, length), *attempts, question))},
    ]


def read_ballot(group: Sequence[Candidate], text: str) -> Ballot:
    """The vote in an answer that states it as JSON.

    Raises:
        agent.models.conversing.Unreadable: it states none.
    """
    said, names = last_object(text, "winner"), letters(group)
    winner, reason = said["winner"], said.get("reason")
    if not isinstance(winner, str) or len(winner) != 1 or winner not in names:
        raise Unreadable(f"`winner` is {str(winner)[:40]!r}: give one of {', '.join(names)}")
    if not isinstance(reason, str) or not reason.strip():
        raise Unreadable("`reason` is missing: say in words what decided")
    return Ballot(tuple(each.node for each in group), group[names.index(winner)].node, line(reason))
