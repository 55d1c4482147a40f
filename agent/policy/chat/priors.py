"""Priors: what a rollout of a later wave is told of the waves before, in the one message that all of its wave share.

Law: it is told nothing but summaries and a plan, the summaries between fences and cut to a limit. Nothing that came
before changes the messages above it, so that conversations of all waves begin with the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from agent.actions.excerpt import excerpt
from agent.models import Message
from agent.policy import Position
from agent.prompts import render
from agent.run.rollouts import Briefing, Plan, Summary
from agent.untrusted import fence, terminal_text, visible

__all__ = ["BRIEFING_BYTES", "accounts", "briefed"]

BRIEFING_BYTES = 24_000
"""Of all summaries together."""
LINE_CHARS = 400
ITEMS = 10
"""Of each list in a summary."""


def briefed(position: Position, room_bytes: int | None = None) -> list[Message]:
    """What is said before the first turn of a rollout of a later wave; nothing anywhere else, and nothing where nothing
    is known. `room_bytes`: room for the summaries, if it is little."""
    told = position.briefing
    if told is None or len(position.path) > 1 or position.steps or not (told.summaries or _says_something(told.plan)):
        return []
    return [{"role": "user", "content": _text(told, min(BRIEFING_BYTES, room_bytes or BRIEFING_BYTES))}]


def accounts(summaries: Sequence[Summary], room_bytes: int, names: Iterable[object] | None = None) -> list[str]:
    """Each summary as a model reads it, all of them in about so many bytes. What they quote is untrusted. Attempts have
    numbers, from 1, or these names."""
    share = room_bytes // max(1, len(summaries))
    named = zip(names or count(1), summaries, strict=False)
    return [excerpt(_account(name, each), share)[0] for name, each in named]


def _text(told: Briefing, room_bytes: int) -> str:
    summaries = accounts(told.summaries, room_bytes)
    return render(
        "chat_wave",
        summaries=summaries,
        fence=fence("attempts", "\n".join(summaries)),
        plan=told.plan if _says_something(told.plan) else None,
    )


def _account(name: object, summary: Summary) -> str:
    """A summary a line a fact."""
    texts = {"hypothesis": summary.hypothesis, "progress": summary.progress}
    lists = {
        "files_read": summary.files_read,
        "files_changed": summary.files_changed,
        "commands": summary.commands,
        "tests_passed": summary.tests_passed,
        "tests_failed": summary.tests_failed,
        "failure_modes": summary.failure_modes,
        "risks": summary.risks,
        "insights": summary.insights,
        "contradictions": summary.contradictions,
    }
    parts = {name: _line(text) for name, text in texts.items()} | {name: _items(all_) for name, all_ in lists.items()}
    return render("chat_wave_attempt", number=name, outcome=summary.outcome, **parts).strip()


def _items(items: tuple[str, ...]) -> list[str]:
    more = [f"... and {len(items) - ITEMS} more"] if len(items) > ITEMS else []
    return [_line(item) for item in items[:ITEMS]] + more


def _says_something(plan: Plan | None) -> bool:
    return plan is not None and bool(plan.steps or plan.dependencies or plan.constraints or plan.feedback)


def _line(text: str) -> str:
    return visible(" ".join(terminal_text(text).split()))[:LINE_CHARS]
