"""Earlier rounds: the message that tells every rollout of a later round about the rounds before.

Invariant: the message contains only summaries and a plan, and the summaries are fenced and cut to a limit. The messages
before it do not change, so that conversations of all rounds share a prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from agent.actions.excerpt import excerpt
from agent.models import Message
from agent.models.answers import line
from agent.policy import Position
from agent.prompts import render
from agent.run.rollouts import RoundPlan, Summary
from agent.untrusted import fence

BRIEFING_BYTES = 24_000
"""The most bytes of all summaries together."""
ITEMS = 10
"""How many items of each list in a summary are shown."""


def briefed(position: Position, most_bytes: int | None = None) -> list[Message]:
    """The message before the first turn of a rollout of a later round; none elsewhere, or if nothing is known.
    `most_bytes`: the size limit of the summaries if the context is short."""
    briefing = position.briefing
    if briefing is None or len(position.path) > 1 or position.steps:
        return []
    plan = None if briefing.plan == RoundPlan() else briefing.plan
    if not briefing.summaries and plan is None:
        return []
    summaries = accounts(briefing.summaries, min(BRIEFING_BYTES, most_bytes or BRIEFING_BYTES))
    text = render("chat_wave", summaries=summaries, fence=fence("attempts", "\n".join(summaries)), plan=plan)
    return [{"role": "user", "content": text}]


def accounts(summaries: Sequence[Summary], most_bytes: int, names: Iterable[object] | None = None) -> list[str]:
    """Each summary as a model reads it, together about `most_bytes`. Their quotations are untrusted. Attempts have the
    given names, or numbers from 1."""
    share = most_bytes // max(1, len(summaries))
    named = zip(names or count(1), summaries, strict=False)
    return [excerpt(_account(name, summary), share)[0] for name, summary in named]


def _account(name: object, summary: Summary) -> str:
    """A summary, one fact a line."""
    text = render(
        "chat_wave_attempt",
        number=name,
        outcome=summary.outcome,
        hypothesis=line(summary.hypothesis),
        progress=line(summary.progress),
        files_read=_items(summary.files_read),
        files_changed=_items(summary.files_changed),
        commands=_items(summary.commands),
        tests_passed=_items(summary.tests_passed),
        tests_failed=_items(summary.tests_failed),
        failure_modes=_items(summary.failure_modes),
        risks=_items(summary.risks),
        insights=_items(summary.insights),
        contradictions=_items(summary.contradictions),
    )
    return text.strip()


def _items(items: tuple[str, ...]) -> list[str]:
    more = [f"... and {len(items) - ITEMS} more"] if len(items) > ITEMS else []
    return [*map(line, items[:ITEMS]), *more]
