"""House rules: how a person and a repository want the work to be done, as a model is told."""

from __future__ import annotations

from collections.abc import Sequence

from agent.policy.chat.conventions import Convention, cut
from agent.prompts import render
from agent.task import Task
from agent.untrusted import fence

__all__ = ["repository_conventions", "user_instructions"]

SHARE = 0.5
"""Of the room for the issue, where room is little: the most that conventions take beside it."""


def user_instructions(task: Task) -> str:
    """The person's own instructions, for the system prompt; empty where there are none."""
    text = task.instructions.strip()
    return "\n\n" + render("chat_instructions", instructions=text).strip() if text else ""


def repository_conventions(files: Sequence[Convention], issue_bytes: int | None = None) -> str:
    """What the repository says of itself, for the end of the first message; empty where it says nothing.
    `issue_bytes`: room for the issue, if it is little."""
    if not files:
        return ""
    shown = files if issue_bytes is None else cut(files, int(issue_bytes * SHARE))
    marked = fence("conventions", "\n".join(each.text for each in shown))
    return "\n\n" + render("chat_conventions", files=shown, fence=marked).strip()
