"""Renders remembered items for a model within a token limit.

Invariant: an item that does not fit is left out whole, the least useful first. Only long quotations are cut, and they
say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from agent.actions.excerpt import excerpt
from agent.learning.memory.items import Episode, Experience, Insight, Item, Reflection
from agent.models import BYTES_PER_TOKEN
from agent.prompts import render
from agent.untrusted import visible

ISSUES_SHARE, PATCHES_SHARE = 0.25, 0.4
"""The largest shares of the limit for all quoted issues of past repairs, and for all their patches."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A text for a policy, and the items in it."""

    text: str = ""
    ids: tuple[str, ...] = ()
    """The ids of the items, in the order in which they were added."""


def compose(items: Sequence[Item], tokens: int) -> Remembered:
    """The items that fit into `tokens`, taken in order."""
    kept, text = list[Item](), ""
    room = tokens * BYTES_PER_TOKEN / max(1, sum(isinstance(item, Episode) for item in items))
    for item in items:
        longer = _rendered([*kept, item], room)
        if len(longer.encode("utf-8", "replace")) <= tokens * BYTES_PER_TOKEN:
            kept, text = [*kept, item], longer
    return Remembered(text, tuple(item.id for item in kept))


def _rendered(items: Sequence[Item], room_bytes: float) -> str:
    sections: dict[str, list[Mapping[str, object]]] = {
        f"{kind}s": [_shown(item, room_bytes) for item in items if item.kind == kind]
        for kind in ("episode", "insight", "reflection", "experience")
    }
    return visible(render("chat_memory_items", **sections)).strip()


def _shown(item: Item, room_bytes: float) -> Mapping[str, object]:
    match item:
        case Episode():
            return {
                "id": item.id,
                "outcome": item.outcome,
                "evidence": f"{item.outcome} in {item.sources[0]}: {item.evidence}",
                "issue": _quoted(item.issue, ISSUES_SHARE * room_bytes),
                "failures": "\n".join(item.failures),
                "tried": "\n".join(item.tried),
                "patch": _quoted(item.patch, PATCHES_SHARE * room_bytes),
            }
        case Insight():
            return {"id": item.id, "text": item.text, "runs": len(item.sources)}
        case Reflection():
            values = {"predicted": f"{item.predicted:.2f}", "measured": f"{item.measured:.2f}"}
            return {"id": item.id, "done": item.done, "said": item.said, "lesson": item.lesson, **values}
        case Experience():
            return {"id": item.id, "error": item.error, "done": item.done, "change": item.change}
        case _:
            assert_never(item)


def _quoted(text: str, most_bytes: float) -> str:
    return excerpt(text.strip(), int(most_bytes))[0]
