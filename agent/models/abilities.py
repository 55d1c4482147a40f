"""What is known about a hosted model in advance: tool support, reasoning, and the length of its context."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.models.library import entry_of

_REASONING = re.compile(r"(?:o[1-9]|gpt-[5-9])(?!.*(?:chat|search))")
"""Names of OpenAI's reasoning models, for those that litellm's list does not have yet."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a model can do. None means unknown."""

    tools: bool | None = None
    """Whether it calls tools through its provider's interface."""
    context_tokens: int | None = None
    """Maximum length of the prompt, or of prompt and answer together if the prompt has no limit of its own."""


def abilities(name: str, base_url: str | None = None) -> Abilities:
    """The model's abilities according to litellm's list; unknown for the user's own server."""
    entry = entry_of(name, base_url)
    if not entry:
        return Abilities()
    length = entry.get("max_input_tokens") or entry.get("max_tokens")
    return Abilities(bool(entry.get("supports_function_calling")), length)


def reasons(name: str) -> bool:
    """Whether a model of OpenAI (named without the provider) reasons before it answers. Such a model keeps its
    reasoning between turns only through the Responses interface, and newer ones take tools only there."""
    entry = entry_of(name)
    if not entry:
        return bool(_REASONING.match(name))
    return entry.get("mode") == "responses" or bool(entry.get("supports_reasoning"))
