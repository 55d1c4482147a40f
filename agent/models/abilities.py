"""What is known of a hosted model before it is asked: whether it takes tools, whether it reasons, and how long a
conversation may be."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["Abilities", "abilities", "reasons"]

_REASONING = re.compile(r"(?:o[1-9]|gpt-[5-9])(?!.*(?:chat|search))")
"""Names of OpenAI's models that reason, where litellm's list does not have them yet."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """None: not known."""

    tools: bool | None = None
    """Whether it calls tools by its provider's interface."""
    context_tokens: int | None = None
    """How long question and answer may be together, or the question alone where it has a limit of its own."""


def abilities(name: str, base_url: str | None = None) -> Abilities:
    """What litellm's list says of the model. Of a server of one's own nothing is known, and no list is loaded."""
    own_server = base_url or os.environ.get("OPENAI_BASE_URL")
    if own_server and name.startswith("openai/"):
        return Abilities()
    from agent.models.library import load

    known = load().model_cost
    listed = known.get(name) or known.get(name.partition("/")[2])
    if listed is None:
        return Abilities()
    length = listed.get("max_input_tokens") or listed.get("max_tokens")
    return Abilities(bool(listed.get("supports_function_calling")), length)


def reasons(name: str) -> bool:
    """Whether a model of OpenAI's own, without the provider in its name, reasons before it answers. Such a model keeps
    its reasoning between turns by the Responses interface alone, and newer ones take tools only there."""
    from agent.models.library import load

    listed = load().model_cost.get(name)
    if listed is None:
        return bool(_REASONING.match(name))
    return listed.get("mode") == "responses" or bool(listed.get("supports_reasoning"))
