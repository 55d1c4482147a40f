"""The events of a search for the page's replay: what happened, where, when, and what had been spent by then."""

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


def moments(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """An object for each event that the page shows: `node` is where it happened, `at` the node it began from."""
    spent, seconds = Usage(), 0.0
    for event in events:
        seconds = getattr(event, "elapsed_s", seconds)
        if isinstance(event, Spent):
            spent += event.usage
        elif isinstance(event, Asked):
            spent += event.answer.usage
        if (moment := _moment(event)) is not None:
            yield {**moment, "kind": event.kind, "s": round(seconds, 2), **_sums(spent)}


def _sums(spent: Usage) -> dict[str, Any]:
    return {
        "runs": spent.measurements,
        "calls": spent.model_calls,
        "tokens": spent.tokens,
        "usd": spent.cost_usd,
        "unpriced": spent.unpriced_calls,
    }


def _moment(event: Event) -> dict[str, Any] | None:
    """The event in words; None for events that the page does not show."""
    match event:
        case Added():
            return {"node": event.node.id, "at": next(iter(event.node.parents), None), "text": event.node.label}
        case Merged():
            return {"node": event.node, "at": event.parent, "text": event.label}
        case Remeasured():
            return {"node": event.node, "text": f"worth {event.evaluation.value:.3f}"}
        case Failed():
            return {"node": event.node, "text": event.reason}
        case Started():
            return {"text": "the search begins"}
        case Asked():
            return {"node": event.node, "text": f"{event.model} is asked ({event.purpose or 'policy'})"}
        case Refused():
            return {"node": event.node, "text": f"{event.model} refuses a request: {event.reason}"}
        case Steered():
            return {"node": event.order.node, "text": f"{event.order.act} {event.order.hint}".strip()}
        case Summarised():
            return {"node": event.summary.leaf, "text": f"summarised by {event.summary.author}"}
        case Voted():
            return {"node": event.ballot.winner, "text": f"{event.ballot.judge} votes"}
        case Round():
            return {"text": f"round {event.number} begins"}
        case Ended():
            return {"node": event.best, "text": f"search finished: {event.status}"}
        case _:
            return None
