"""Language models: one method, `complete`, whoever serves the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.budget import Usage

__all__ = ["Completion", "Message", "Model", "ToolCall"]

Message = Mapping[str, Any]
"""A chat message in the OpenAI form: role, content, tool_calls, tool_call_id."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `arguments` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The assistant message exactly as it has to be sent back (reasoning blocks included)."""


class Model(Protocol):
    """A chat model with tools. Thread-safe."""

    @property
    def name(self) -> str:
        """As the user gave it, for the record."""
        ...

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """Answer a conversation.

        Raises:
            agent.errors.ConfigError: no key, or no such model.
            agent.errors.ModelError: the provider refused or failed for good.
            agent.errors.PolicyError: the conversation is too long for the model.
        """
        ...

    def close(self) -> None:
        """Give back its connections; it is not asked again."""
        ...
