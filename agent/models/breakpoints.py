"""Cache marks in prompts, for providers whose prefix cache keeps only what is marked.

Claude models read the longest prefix that an earlier request marked (docs.claude.com, "Prompt caching"), with at most
four marks per request. A prefix that is not read within its lifetime is forgotten. Writing one that is kept for an hour
costs 2 times the prompt's price, for five minutes 1.25 times. Marks are added when a request is sent and are never
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from agent.models import Message

Lifetime = Callable[[], Literal["5m", "1h"]]
"""Returns how long a marked prefix is kept while it is not read."""
SLOW_S = 150.0
"""A test run that takes longer leaves too little of the five minutes for the turns around it."""

_PROVIDERS = frozenset({"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"})
"""Providers to which litellm passes the marks on."""
_CACHE_CONTROL = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}


def five_minutes() -> Literal["5m", "1h"]:
    """The default lifetime of all providers."""
    return "5m"


def lifetime(suite_s: float) -> Literal["5m", "1h"]:
    """The lifetime for a run whose test suite takes this many seconds."""
    return "1h" if suite_s > SLOW_S else "5m"


def needs_marks(provider: str, name: str) -> bool:
    """Whether the provider caches this model's prompts only up to a mark."""
    return provider in _PROVIDERS and "claude" in name.lower()


def marked(messages: Sequence[Message], ttl: Literal["5m", "1h"] = "5m") -> list[dict[str, Any]]:
    """The conversation with marks of one lifetime after the system message and the task, which the whole tree shares,
    and after the last two messages that the model did not write. The second-last of these ends the prefix that siblings
    share, because the last one is particular to each child."""
    inputs = [n for n, message in enumerate(messages) if message["role"] != "assistant" and message.get("content")]
    places = {*inputs[:2], *inputs[-2:]}
    return [
        {**message, "cache_control": _CACHE_CONTROL[ttl]} if n in places else dict(message)
        for n, message in enumerate(messages)
    ]
