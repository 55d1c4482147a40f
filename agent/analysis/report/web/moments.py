"""The search event by event, as the page replays it: what happened, where, when, and what had been spent by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agent.budget import Usage
from agent.run.events import (
    Added,
    Asked,
    Ended,
    Event,
    Failed,
    Merged,
    Refused,
    Remeasured,
    Round,
    Spent,
    Started,
    Steered,
    Summarised,
    Voted,
)

__all__ = ["moments"]


def moments(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """An object for each event that a person can see: `node` is where it happened, `at` what it began from."""
    spent, seconds = Usage(), 0.0
    for event in events:
        seconds = getattr(event, "elapsed_s", seconds)
        spent += (
            event.usage if isinstance(event, Spent) else event.answer.usage if isinstance(event, Asked) else Usage()
        )
        if (told := _told(event)) is not None:
            yield {**told, "kind": event.kind, "s": round(seconds, 2), **_sums(spent)}


def _sums(spent: Usage) -> dict[str, Any]:
    known = {"runs": spent.measurements, "calls": spent.model_calls, "tokens": spent.tokens}
    return {**known, "usd": spent.cost_usd, "unpriced": spent.unpriced_calls}


def _told(event: Event) -> dict[str, Any] | None:
    """None: nothing that is seen of the tree changed."""
    match event:
        case Added():
            return {"node": event.node.id, "at": next(iter(event.node.parents), None), "text": event.node.label}
        case Merged():
            return {"node": event.node, "at": event.parent, "text": event.label}
        case Remeasured():
            return {"node": event.node, "text": f"worth {event.evaluation.value:.3f}"}
        case Failed():
            return {"node": event.node, "text": event.reason}
        case _:
            return _said(event)


def _said(event: Event) -> dict[str, Any] | None:
    match event:
        case Started():
            return {"text": "the search begins"}
        case Asked():
            return {"node": event.node, "text": f"{event.model} is asked ({event.purpose or 'policy'})"}
        case Refused():
            return {"node": event.node, "text": f"{event.model} refuses a request: {event.reason}"}
        case Steered():
            return {"node": event.order.node, "text": f"{event.order.act} {event.order.hint}".strip()}
        case Summarised():
            return {"node": event.summary.leaf, "text": f"put into words by {event.summary.author}"}
        case Voted():
            return {"node": event.ballot.winner, "text": f"{event.ballot.judge} votes"}
        case Round():
            return {"text": f"wave {event.number} begins"}
        case Ended():
            return {"node": event.best, "text": f"the session ends: {event.status}"}
        case _:
            return None
