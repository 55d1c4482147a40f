"""Where a prompt is marked for its provider's prefix cache, for providers that keep nothing without marks.

Claude models read the longest prefix that an earlier request marked (docs.claude.com, "Prompt caching"): at most four
marks a request. The marks are made when a request is sent and are in no record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.models import Message

__all__ = ["marked", "needs_marks"]

_PROVIDERS = frozenset({"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"})
"""Those through which litellm hands the marks on."""
_MARK = {"type": "ephemeral"}


def needs_marks(provider: str, name: str) -> bool:
    """Whether the provider caches only what is marked."""
    return provider in _PROVIDERS and "claude" in name.lower()


def marked(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation with its marks: at the end of the system's message and of the task, which a whole tree shares,
    and at the last two messages that are not the model's own. The second last ends what siblings share, as each child
    is told something of its own last."""
    given = [n for n, message in enumerate(messages) if message["role"] != "assistant" and message.get("content")]
    places = {*given[:2], *given[-2:]}
    return [{**message, "cache_control": _MARK} if n in places else dict(message) for n, message in enumerate(messages)]
