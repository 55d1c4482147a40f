"""Where a prompt is marked for its provider's prefix cache, for providers that keep nothing without marks.

Claude models read the longest prefix that an earlier request marked (docs.claude.com, "Prompt caching"): at most four
marks a request. A prefix that nobody reads for its lifetime is forgotten; writing one that is kept for an hour costs
twice what the prompt costs, in place of 1.25 times. The marks are made when a request is sent and are in no record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from agent.models import Message

__all__ = ["SLOW_S", "Lifetime", "five_minutes", "lifetime", "marked", "needs_marks"]

Lifetime = Callable[[], Literal["5m", "1h"]]
"""Says how long a marked prefix is to be kept unread."""
SLOW_S = 150.0
"""A run of the tests that takes longer leaves too little of five minutes for the turns around it."""

_PROVIDERS = frozenset({"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"})
"""Those through which litellm hands the marks on."""
_MARKS = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}


def five_minutes() -> Literal["5m", "1h"]:
    """What providers do when nothing is said."""
    return "5m"


def lifetime(suite_s: float) -> Literal["5m", "1h"]:
    """For a run whose tests take so many seconds."""
    return "1h" if suite_s > SLOW_S else "5m"


def needs_marks(provider: str, name: str) -> bool:
    """Whether the provider caches only what is marked."""
    return provider in _PROVIDERS and "claude" in name.lower()


def marked(messages: Sequence[Message], ttl: Literal["5m", "1h"] = "5m") -> list[dict[str, Any]]:
    """The conversation with its marks, all of one lifetime: at the end of the system's message and of the task, which a
    whole tree shares, and at the last two messages that are not the model's own. The second last ends what siblings
    share, as each child is told something of its own last."""
    given = [n for n, message in enumerate(messages) if message["role"] != "assistant" and message.get("content")]
    places = {*given[:2], *given[-2:]}
    return [
        {**message, "cache_control": _MARKS[ttl]} if n in places else dict(message)
        for n, message in enumerate(messages)
    ]
