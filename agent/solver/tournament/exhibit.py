"""What a judge is shown of a group: the issue, and the summary and patch of each candidate. A candidate is named by a
letter, which depends only on its position. No trace of a rollout is shown: summaries serve judges better (arXiv
2604.16529).

Law: as `agent.evaluate.value.exhibit`. The candidates of a group share one size limit.
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
"""Both limits are for all candidates of a group together."""


def letters(group: Sequence[object]) -> str:
    """The names of a group's members for a judge, in order.

    Raises:
        ValueError: the group has more members than there are letters.
    """
    if len(group) > len(ascii_uppercase):
        raise ValueError(f"a group of {len(group)}: a judge compares {len(ascii_uppercase)} at most")
    return ascii_uppercase[: len(group)]


def group_messages(task: Task, group: Sequence[Candidate], question: str, length: float = 1.0) -> list[Message]:
    """A question about a group. `length` is the fraction of each limit that is used, in (0, 1]."""
    summaries = accounts([candidate.summary for candidate in group], int(ACCOUNTS_BYTES * length), letters(group))
    room = int(PATCHES_BYTES * length) // len(group)
    attempts = [
        render(
            "tournament_attempt",
            letter=letter,
            account=fenced(f"account-{letter}", account, ACCOUNTS_BYTES),
            patch=fenced(f"change-{letter}", printable(candidate.patch), room),
        )
        for letter, account, candidate in zip(letters(group), summaries, group, strict=True)
    ]
    return [
        {"role": "system", "content": render("tournament_system")},
        {"role": "user", "content": "\n\n".join((shown_issue(task, length), *attempts, question))},
    ]


def read_ballot(group: Sequence[Candidate], text: str) -> Ballot:
    """The vote in an answer, from its JSON.

    Raises:
        agent.models.conversing.Unreadable: the answer contains no valid vote.
    """
    reply, names = last_object(text, "winner"), letters(group)
    winner, reason = reply["winner"], reply.get("reason")
    if not isinstance(winner, str) or len(winner) != 1 or winner not in names:
        raise Unreadable(f"`winner` is {str(winner)[:40]!r}: give one of {', '.join(names)}")
    if not isinstance(reason, str) or not reason.strip():
        raise Unreadable("`reason` is missing: say in words what decided")
    return Ballot(tuple(candidate.node for candidate in group), group[names.index(winner)].node, line(reason))
